/**
 * A path of our own for RDMA_OPTION_IB_PATH (struct ibv_path_data, big-endian): rdma_cm takes the
 * path MTU of a connection from nowhere else. The kernel adds what belongs to Ethernet itself.
 */
import { DEFAULT_PKEY, type Gid, PATH_MTU_BYTES } from '../../../core/spi/index.js';

const LENGTH = 72;
/** General management path, primary, both directions. */
const FLAGS = 0b101011;
const EXACTLY = 2 << 6;
const REVERSIBLE = 0x80;
const HOP_LIMIT = 64;
/** 2.5 Gbit/s: limits nothing on Ethernet, where the port's rate counts. */
const RATE = 2;

export interface PathChoice {
  readonly localGid: Gid;
  readonly remoteGid: Gid;
  readonly pathMtuBytes: number;
  /** Exponent of 4.096 us * 2^n: there and back, so a packet lives for half of it. */
  readonly ackTimeout: number;
}

export function pathDataOf(choice: PathChoice): Uint8Array {
  const { localGid, remoteGid, pathMtuBytes, ackTimeout } = choice;
  const bytes = new Uint8Array(LENGTH);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, FLAGS, true);
  bytes.set(remoteGid, 16);
  bytes.set(localGid, 32);
  view.setUint32(52, HOP_LIMIT);
  bytes[57] = REVERSIBLE | 1;
  view.setUint16(58, DEFAULT_PKEY);
  bytes[62] = EXACTLY | PATH_MTU_BYTES.indexOf(pathMtuBytes);
  bytes[63] = EXACTLY | RATE;
  bytes[64] = EXACTLY | Math.max(ackTimeout - 1, 0);
  return bytes;
}
