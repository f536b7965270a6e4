/**
 * Private data of a connection request and its answer (librdmacm's rs_conn_data): 40 bytes,
 * big-endian; in the request it follows rdma_cm's header.
 */
import { RsocketProtocolError } from './message.js';

/** Bytes of an entry of the target list, and of an iomap entry. */
export const TARGET_BYTES = 16;
export const IOMAP_BYTES = 24;

/** Offsets of the fields, and the length of all. */
export const CONNECTION_DATA = {
  VERSION: 0,
  FLAGS: 1,
  CREDITS: 2,
  /** Three bytes of 0. */
  RESERVED: 4,
  IOMAP_SIZE: 7,
  TARGET_LIST: 8,
  BUFFER: 24,
  BYTES: 40,
} as const;

/** Offsets within the sixteen bytes of a region. */
const REGION = { ADDRESS: 0, KEY: 8, LENGTH: 12 } as const;

export const VERSION = 1;
/** Entries of a target list; no program uses another number. */
export const LIST_ENTRIES = 2;

export const ConnectionFlags = {
  /** The sender uses big-endian numbers. */
  NET: 1,
  /** The sender accepts iomap entries. */
  IOMAP: 2,
} as const;

/** Memory of the sender that the peer may write. */
export interface RemoteRegion {
  /** u64. */
  readonly address: bigint;
  /** The rkey, u32. */
  readonly key: number;
  /** u32: bytes of a buffer, entries of a list. */
  readonly length: number;
}

export interface ConnectionData {
  readonly isBigEndian: boolean;
  /**
   * DATA and IOMAP messages that the sender can receive before it grants more credits: 1 to 65535.
   */
  readonly credits: number;
  /** Areas that the peer may publish to the sender: 0 to 127, or a multiple of 256 up to 32512. */
  readonly iomapSlots: number;
  /** Target list that the peer writes entries to; the iomap entries follow it. */
  readonly targetList: RemoteRegion;
  /** The first half of the receive buffer; its length is that of each half. */
  readonly buffer: RemoteRegion;
}

/**
 * Encoding of slots as one byte: up to 127 as they are, more in units of 256. (128 would read as
 * 0.)
 */
const SCALED = 0x80;
const SCALE = 256;
const MOST_SLOTS = 0x7f * SCALE;
const END_OF_ADDRESSES = 2n ** 64n;

/** The number of slots to announce if at least `wanted` are needed: 0 to 32512. */
export function announcedSlots(wanted: number): number {
  return wanted < SCALED ? wanted : Math.min(Math.ceil(wanted / SCALE) * SCALE, MOST_SLOTS);
}

export function encodeConnectionData(data: ConnectionData): Uint8Array {
  const bytes = new Uint8Array(CONNECTION_DATA.BYTES);
  const view = new DataView(bytes.buffer);
  const { isBigEndian, credits, iomapSlots, targetList, buffer } = data;
  bytes[CONNECTION_DATA.VERSION] = VERSION;
  bytes[CONNECTION_DATA.FLAGS] = ConnectionFlags.IOMAP | (isBigEndian ? ConnectionFlags.NET : 0);
  view.setUint16(CONNECTION_DATA.CREDITS, credits);
  bytes[CONNECTION_DATA.IOMAP_SIZE] =
    iomapSlots < SCALED ? iomapSlots : SCALED | (iomapSlots / SCALE);
  writeRegion(view, CONNECTION_DATA.TARGET_LIST, targetList);
  writeRegion(view, CONNECTION_DATA.BUFFER, buffer);
  return bytes;
}

/**
 * @param bytes private data of a request or an answer; bytes after the first 40 are ignored
 * @throws RsocketProtocolError naming field, value and limit
 */
export function decodeConnectionData(bytes: Uint8Array): ConnectionData {
  if (bytes.length < CONNECTION_DATA.BYTES) {
    throw new RsocketProtocolError('private data', bytes.length, 'at least 40 bytes');
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const version = view.getUint8(CONNECTION_DATA.VERSION);
  if (version !== VERSION) throw new RsocketProtocolError('version', version, `${VERSION}`);
  const flags = view.getUint8(CONNECTION_DATA.FLAGS);
  const credits = view.getUint16(CONNECTION_DATA.CREDITS);
  if (credits === 0) throw new RsocketProtocolError('credits', credits, '1 to 65535');
  const targetList = readRegion(view, CONNECTION_DATA.TARGET_LIST);
  if (targetList.length !== LIST_ENTRIES) {
    throw new RsocketProtocolError('entries', targetList.length, `${LIST_ENTRIES}`);
  }
  const buffer = readRegion(view, CONNECTION_DATA.BUFFER);
  if (buffer.length === 0) throw new RsocketProtocolError('buffer length', 0, '1 to 4294967295');
  checkEnd('buffer', buffer);
  const slots = view.getUint8(CONNECTION_DATA.IOMAP_SIZE);
  const scaled = (slots & SCALED) === 0 ? slots : (slots & 0x7f) * SCALE;
  // The list, and the iomap entries after it.
  const listBytes = LIST_ENTRIES * TARGET_BYTES + scaled * IOMAP_BYTES;
  checkEnd('target list', { ...targetList, length: listBytes });
  return {
    isBigEndian: (flags & ConnectionFlags.NET) !== 0,
    credits,
    iomapSlots: (flags & ConnectionFlags.IOMAP) === 0 ? 0 : scaled,
    targetList,
    buffer,
  };
}

/** @throws RsocketProtocolError for a region that passes the end of all addresses, 2^64 */
export function checkEnd(name: string, { address, length }: RemoteRegion): void {
  if (address + BigInt(length) <= END_OF_ADDRESSES) return;
  const most = `at most ${END_OF_ADDRESSES - address} bytes from there on`;
  throw new RsocketProtocolError(`${name} length`, length, most);
}

function writeRegion(view: DataView, at: number, { address, key, length }: RemoteRegion): void {
  view.setBigUint64(at + REGION.ADDRESS, address);
  view.setUint32(at + REGION.KEY, key);
  view.setUint32(at + REGION.LENGTH, length);
}

function readRegion(view: DataView, at: number): RemoteRegion {
  return {
    address: view.getBigUint64(at + REGION.ADDRESS),
    key: view.getUint32(at + REGION.KEY),
    length: view.getUint32(at + REGION.LENGTH),
  };
}
