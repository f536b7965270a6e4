/**
 * Paths to peers. Connections to one peer share a path. The data to compare with each received
 * packet then stays in the caches, even for many connections.
 */
import { assert } from '../../../core/spi/checks/index.js';
import { isSpiError } from '../../../core/spi/errors/consumer-errors.js';
import {
  type AddressVector,
  CHANNEL_MTU_BYTES,
  type Gid,
  gidWords,
  type GidWords,
  SpiError,
  ipFromGid,
} from '../../../core/spi/index.js';
import type { ReceivedPacket } from '../common/received-packet.js';
import type { RcQueuePair } from '../rc/queue-pair.js';

const NO_GID: GidWords = [0, 0, 0, 0];

/** A way, and the test that a packet came that way. */
export class PeerPath {
  /** Connections that go this way. */
  users = 0;

  /**
   * @param number the port's; -1 for none
   * @param peer packets from other addresses do not belong to a connection on this path
   */
  constructor(
    readonly number: number,
    private readonly peer: GidWords,
    private readonly localGidIndex: number,
  ) {}

  leadsTo(rx: ReceivedPacket): boolean {
    const { peer } = this;
    return (
      rx.source3 === peer[3] &&
      rx.source2 === peer[2] &&
      rx.source1 === peer[1] &&
      rx.source0 === peer[0] &&
      rx.localGidIndex === this.localGidIndex
    );
  }
}

/** The way of a connection that has none yet. */
export const NO_PATH = new PeerPath(-1, NO_GID, 0);

/** Services that paths need from the device. */
export interface PathPort {
  addPath(gid: Gid, localGidIndex: number, mtuBytes?: number, destinationQpn?: number): number;
  releasePath(path: number): void;
}

/** @throws SpiError('ENETUNREACH') that names the parameter `name`; what the port says itself */
export function addPath(
  port: Pick<PathPort, 'addPath'>,
  { gid, localGidIndex }: AddressVector,
  name: string,
  mtuBytes?: number,
  destinationQpn?: number,
): number {
  try {
    return port.addPath(gid, localGidIndex, mtuBytes, destinationQpn);
  } catch (cause) {
    if (isSpiError(cause)) throw cause;
    const what =
      mtuBytes === CHANNEL_MTU_BYTES
        ? 'no memory is shared with it'
        : 'no local address reaches it';
    throw new SpiError('ENETUNREACH', `${name}: ${what}`, { cause });
  }
}

export class PeerPaths {
  /** By the port's number: the same arguments give the same one while it is in use. */
  private readonly paths = new Map<number, PeerPath>();

  constructor(private readonly port: PathPort) {}

  /**
   * A path in place of `old`, which is given back.
   * @param mtuBytes of the connection
   * @throws SpiError('ENETUNREACH'), and `old` is still held
   */
  replace(
    old: PeerPath,
    vector: AddressVector,
    mtuBytes?: number,
    destinationQpn?: number,
  ): PeerPath {
    const { gid, localGidIndex } = vector;
    const number = addPath(this.port, vector, 'addressVector.gid', mtuBytes, destinationQpn);
    let path = this.paths.get(number);
    if (path === undefined) {
      path = new PeerPath(number, gidWords(gid), localGidIndex);
      this.paths.set(number, path);
    }
    path.users += 1;
    this.release(old);
    return path;
  }

  /** @returns the path of a connection that has none */
  release(path: PeerPath): PeerPath {
    if (path === NO_PATH) return path;
    assert(path.users > 0, 'a path is released as often as it was taken', path.number);
    path.users -= 1;
    if (path.users === 0) this.paths.delete(path.number);
    this.port.releasePath(path.number);
    return NO_PATH;
  }
}

/** Connections by the peer's address: hints of the network name nothing else. */
export class PeerTable {
  private readonly byAddress = new Map<string, Set<RcQueuePair>>();
  private readonly addressOf = new Map<RcQueuePair, string>();

  add(gid: Gid, qp: RcQueuePair): void {
    const address = ipFromGid(gid);
    const qps = this.byAddress.get(address) ?? new Set();
    this.byAddress.set(address, qps.add(qp));
    this.addressOf.set(qp, address);
  }

  remove(qp: RcQueuePair): void {
    const address = this.addressOf.get(qp);
    if (address === undefined) return;
    this.addressOf.delete(qp);
    const qps = this.byAddress.get(address);
    qps?.delete(qp);
    if (qps?.size === 0) this.byAddress.delete(address);
  }

  at(gid: Gid): Iterable<RcQueuePair> {
    return this.byAddress.get(ipFromGid(gid)) ?? [];
  }
}
