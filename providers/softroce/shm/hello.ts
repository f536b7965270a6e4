/**
 * Messages on a Unix socket between two devices of one host. All numbers are little-endian;
 * reserved fields are 0. Every message has exactly the length and the descriptors of its kind.
 *
 *     0  magic u32 "DAPL"   4  version u8   5  kind u8
 *     6  u16: in HELLO the sender's slot and 1, or 0 where its device is one process
 *     HELLO          8  node GUID u64   16  generation u64   24  bytes of memory u64
 *                   32  UDP port u16   34  addresses u8 (1 to 64)   35  0, 5 bytes
 *                   40  addresses, 16 bytes each; descriptors: memory, wake
 *     CROSSED, READY (nothing)
 *     SEGMENT        8  number u32   12  0 u32   16  bytes u64; descriptor: memory
 *     SEGMENT_READY  8  number u32   12  0 u32
 *     SEGMENT_GONE   8  number u32   12  0 u32
 */
import type { Gid } from '../../../core/spi/index.js';

const MAGIC = 0x4c504144;
/** Another version is another protocol: its messages are not read. */
export const HELLO_VERSION = 1;
const MAX_ADDRESSES = 64;
const MAX_SLOT = 254;
const HEADER_BYTES = 8;
const HELLO_BYTES = 40;
const SEGMENT_BYTES = 24;
const NUMBER_BYTES = 16;
const GID_BYTES = 16;

const KIND = {
  HELLO: 1,
  CROSSED: 2,
  SEGMENT: 3,
  SEGMENT_READY: 4,
  SEGMENT_GONE: 5,
  READY: 6,
} as const;

/** A device, and the half of a channel that it makes. */
export interface Hello {
  readonly kind: 'HELLO';
  /** The slot of the device's process; undefined where the device is one process. */
  readonly slot: number | undefined;
  readonly guid: bigint;
  /** Generation of this half of the channel: 64 random bits. */
  readonly generation: bigint;
  readonly memoryBytes: number;
  readonly udpPort: number;
  readonly gids: readonly Gid[];
}

export interface SegmentMessage {
  readonly kind: 'SEGMENT';
  /** 1 to 2^32 - 1, never used again. */
  readonly segment: number;
  readonly bytes: number;
}

export interface SegmentWord {
  /** The sender has mapped it; the sender has given it up. */
  readonly kind: 'SEGMENT_READY' | 'SEGMENT_GONE';
  readonly segment: number;
}

/** CROSSED: the call that this answers is dropped, the sender's stays. READY: both have mapped. */
export interface Word {
  readonly kind: 'CROSSED' | 'READY';
}

export type MeetingMessage = Hello | SegmentMessage | SegmentWord | Word;

/** Descriptors that come with each kind. */
const DESCRIPTORS: Readonly<Record<MeetingMessage['kind'], number>> = {
  HELLO: 2,
  CROSSED: 0,
  READY: 0,
  SEGMENT: 1,
  SEGMENT_READY: 0,
  SEGMENT_GONE: 0,
};

export function emitMessage(message: MeetingMessage): Uint8Array {
  const bytes = new Uint8Array(lengthOf(message));
  const view = new DataView(bytes.buffer);
  view.setUint32(0, MAGIC, true);
  view.setUint8(4, HELLO_VERSION);
  view.setUint8(5, KIND[message.kind]);
  if (message.kind === 'HELLO') emitHello(message, view, bytes);
  else if ('segment' in message) view.setUint32(8, message.segment, true);
  if (message.kind === 'SEGMENT') view.setBigUint64(16, BigInt(message.bytes), true);
  return bytes;
}

function emitHello(hello: Hello, view: DataView, bytes: Uint8Array): void {
  view.setUint16(6, hello.slot === undefined ? 0 : hello.slot + 1, true);
  view.setBigUint64(8, hello.guid, true);
  view.setBigUint64(16, hello.generation, true);
  view.setBigUint64(24, BigInt(hello.memoryBytes), true);
  view.setUint16(32, hello.udpPort, true);
  view.setUint8(34, hello.gids.length);
  hello.gids.forEach((gid, i) => bytes.set(gid, HELLO_BYTES + GID_BYTES * i));
}

function lengthOf(message: MeetingMessage): number {
  switch (message.kind) {
    case 'HELLO':
      return HELLO_BYTES + GID_BYTES * message.gids.length;
    case 'SEGMENT':
      return SEGMENT_BYTES;
    case 'CROSSED':
    case 'READY':
      return HEADER_BYTES;
    default:
      return NUMBER_BYTES;
  }
}

/** @returns undefined for anything but a message of this version, whole, with its descriptors */
export function parseMessage(bytes: Uint8Array, descriptors: number): MeetingMessage | undefined {
  if (bytes.length < HEADER_BYTES) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (view.getUint32(0, true) !== MAGIC || view.getUint8(4) !== HELLO_VERSION) return undefined;
  const message = PARSERS[view.getUint8(5)]?.(view, bytes);
  if (message === undefined || lengthOf(message) !== bytes.length) return undefined;
  return DESCRIPTORS[message.kind] === descriptors ? message : undefined;
}

type Parser = (view: DataView, bytes: Uint8Array) => MeetingMessage | undefined;

const PARSERS: Readonly<Record<number, Parser>> = {
  [KIND.HELLO]: parseHello,
  [KIND.CROSSED]: (view) => wholeWord('CROSSED', view),
  [KIND.READY]: (view) => wholeWord('READY', view),
  [KIND.SEGMENT]: (view) => {
    const segment = segmentOf(view, SEGMENT_BYTES);
    const bytes = segment === undefined ? undefined : sizeAt(view, 16);
    return bytes === undefined ? undefined : { kind: 'SEGMENT', segment: segment!, bytes };
  },
  [KIND.SEGMENT_READY]: (view) => wordOf('SEGMENT_READY', view),
  [KIND.SEGMENT_GONE]: (view) => wordOf('SEGMENT_GONE', view),
};

function wholeWord(kind: Word['kind'], view: DataView): Word | undefined {
  return view.getUint16(6, true) === 0 ? { kind } : undefined;
}

function wordOf(kind: SegmentWord['kind'], view: DataView): SegmentWord | undefined {
  const segment = segmentOf(view, NUMBER_BYTES);
  return segment === undefined ? undefined : { kind, segment };
}

function segmentOf(view: DataView, length: number): number | undefined {
  if (view.byteLength !== length) return undefined;
  if (view.getUint16(6, true) !== 0 || view.getUint32(12, true) !== 0) return undefined;
  const segment = view.getUint32(8, true);
  return segment === 0 ? undefined : segment;
}

/** Reads a length of memory; undefined if it is no safe integer, or 0. */
function sizeAt(view: DataView, at: number): number | undefined {
  const bytes = view.getBigUint64(at, true);
  return bytes > 0n && bytes <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(bytes) : undefined;
}

function parseHello(view: DataView, bytes: Uint8Array): Hello | undefined {
  if (bytes.length < HELLO_BYTES + GID_BYTES) return undefined;
  const memoryBytes = sizeAt(view, 24);
  const udpPort = view.getUint16(32, true);
  const count = view.getUint8(34);
  const reserved = bytes.subarray(35, HELLO_BYTES);
  if (memoryBytes === undefined || udpPort === 0 || reserved.some((byte) => byte !== 0)) {
    return undefined;
  }
  const slotNumber = view.getUint16(6, true);
  if (slotNumber > MAX_SLOT + 1) return undefined;
  if (count === 0 || count > MAX_ADDRESSES) return undefined;
  if (bytes.length !== HELLO_BYTES + GID_BYTES * count) return undefined;
  const gidAt = (i: number): Gid =>
    new Uint8Array(bytes.subarray(HELLO_BYTES + GID_BYTES * i, HELLO_BYTES + GID_BYTES * (i + 1)));
  return {
    kind: 'HELLO',
    slot: slotNumber === 0 ? undefined : slotNumber - 1,
    guid: view.getBigUint64(8, true),
    generation: view.getBigUint64(16, true),
    memoryBytes,
    udpPort,
    gids: Array.from({ length: count }, (_, i) => gidAt(i)),
  };
}
