/**
 * Messages on a Unix socket between processes that share a device. All numbers are little-endian;
 * reserved fields are 0. Every message has exactly the length and the descriptors of its kind.
 *
 *     0  magic u32 "DSLT"   4  version u8   5  kind u8   6  slot u16
 *     HELLO    slot: NO_SLOT for a process that comes, its own for one that was there before
 *              8  node GUID u64 (0 for one that comes)
 *     PLACE    slot: whose sockets   8  index of the first u16   10  0, 6 bytes;
 *              descriptors: 1 to 16 sockets, one for each address from the first on
 *     SLOT     slot: the taker's   8  node GUID u64   16  bytes of the table u32   20  0 u32;
 *              descriptor: the table. All places have been sent before.
 *     REFUSED  slot: 0   8  reason u16   10  0, 6 bytes
 *     PACKET   slot: whose it is   8  source UDP port u16   10  local GID index u8
 *              11  0, 5 bytes   16  source GID, 16 bytes
 *              32  packet from its BTH on, 12 to 65,568 bytes: all that UDP carries
 *     GOODBYE  slot: the sender's. It has ended its connections itself.
 */
import type { HandedPacket } from '../../core/spi/index.js';

const MAGIC = 0x544c5344;
/** Another version is another protocol: its messages are not read. */
export const SLOTS_VERSION = 1;
/** In HELLO: the sender has none yet. */
export const NO_SLOT = 0xffff;
/** Slots 0 to 254: multicast's QPN, 0xFFFFFF, would be one of slot 255. */
export const MAX_SLOTS = 255;
/** Size limit of a message on the socket: as UNIX_MESSAGE of providers/host. */
const MAX_BYTES = 65_600;
export const MAX_DESCRIPTORS = 16;
const MAX_ADDRESSES = 64;
const HEADER_BYTES = 8;
const WORD_BYTES = 16;
const SLOT_BYTES = 24;
const PACKET_BYTES = 32;
const LEAST_PACKET_BYTES = 12;
/**
 * Longest packet that is handed over, without what precedes its BTH: longer than any datagram.
 * Devices of ours on one host send each other packets of nearly that.
 */
export const MAX_HANDED_BYTES = MAX_BYTES - PACKET_BYTES;
const GID_BYTES = 16;

const KIND = { HELLO: 1, PLACE: 2, SLOT: 3, REFUSED: 4, PACKET: 5, GOODBYE: 6 } as const;

export interface Hello {
  readonly kind: 'HELLO';
  readonly slot: number;
  readonly nodeGuid: bigint;
}

export interface PlaceMessage {
  readonly kind: 'PLACE';
  readonly slot: number;
  /** The index of the first descriptor's address; the others follow. */
  readonly first: number;
}

export interface SlotMessage {
  readonly kind: 'SLOT';
  readonly slot: number;
  readonly nodeGuid: bigint;
  readonly tableBytes: number;
}

/** `full`: all slots are taken or rest. `unknown`: the slot is not that of the sender. */
export type Refusal = 'full' | 'unknown' | 'failed';
const REFUSALS: readonly Refusal[] = ['full', 'unknown', 'failed'];

export interface RefusedMessage {
  readonly kind: 'REFUSED';
  readonly reason: Refusal;
}

export interface PacketMessage {
  readonly kind: 'PACKET';
  readonly slot: number;
  readonly packet: HandedPacket;
}

export interface Goodbye {
  readonly kind: 'GOODBYE';
  readonly slot: number;
}

export type SlotsMessage =
  Hello | PlaceMessage | SlotMessage | RefusedMessage | PacketMessage | Goodbye;

/** Fewest and most descriptors that come with each kind. */
const DESCRIPTORS: Readonly<Record<SlotsMessage['kind'], readonly [number, number]>> = {
  HELLO: [0, 0],
  PLACE: [1, MAX_DESCRIPTORS],
  SLOT: [1, 1],
  REFUSED: [0, 0],
  PACKET: [0, 0],
  GOODBYE: [0, 0],
};

export function emitMessage(message: SlotsMessage): Uint8Array {
  const bytes = new Uint8Array(lengthOf(message));
  const view = new DataView(bytes.buffer);
  view.setUint32(0, MAGIC, true);
  view.setUint8(4, SLOTS_VERSION);
  view.setUint8(5, KIND[message.kind]);
  view.setUint16(6, 'slot' in message ? message.slot : 0, true);
  switch (message.kind) {
    case 'HELLO':
      view.setBigUint64(8, message.nodeGuid, true);
      break;
    case 'PLACE':
      view.setUint16(8, message.first, true);
      break;
    case 'SLOT':
      view.setBigUint64(8, message.nodeGuid, true);
      view.setUint32(16, message.tableBytes, true);
      break;
    case 'REFUSED':
      view.setUint16(8, REFUSALS.indexOf(message.reason), true);
      break;
    case 'PACKET':
      emitPacket(message.packet, view, bytes);
      break;
    default:
  }
  return bytes;
}

function emitPacket(packet: HandedPacket, view: DataView, bytes: Uint8Array): void {
  view.setUint16(8, packet.sourcePort, true);
  view.setUint8(10, packet.localGidIndex);
  bytes.set(packet.sourceGid, 16);
  bytes.set(packet.bytes, PACKET_BYTES);
}

function lengthOf(message: SlotsMessage): number {
  switch (message.kind) {
    case 'SLOT':
      return SLOT_BYTES;
    case 'PACKET':
      return PACKET_BYTES + message.packet.bytes.length;
    case 'GOODBYE':
      return HEADER_BYTES;
    default:
      return WORD_BYTES;
  }
}

/** @returns undefined for anything but a message of this version, whole, with its descriptors */
export function parseMessage(bytes: Uint8Array, descriptors: number): SlotsMessage | undefined {
  if (bytes.length < HEADER_BYTES) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (view.getUint32(0, true) !== MAGIC || view.getUint8(4) !== SLOTS_VERSION) return undefined;
  const message = PARSERS[view.getUint8(5)]?.(view, bytes);
  if (message === undefined) return undefined;
  const [fewest, most] = DESCRIPTORS[message.kind];
  return fewest <= descriptors && descriptors <= most ? message : undefined;
}

type Parser = (view: DataView, bytes: Uint8Array) => SlotsMessage | undefined;

const PARSERS: Readonly<Record<number, Parser>> = {
  [KIND.HELLO]: (view) => {
    const slot = view.getUint16(6, true);
    if (view.byteLength !== WORD_BYTES || !(slot === NO_SLOT || slot < MAX_SLOTS)) return undefined;
    const nodeGuid = view.getBigUint64(8, true);
    return (slot === NO_SLOT) === (nodeGuid === 0n) ? { kind: 'HELLO', slot, nodeGuid } : undefined;
  },
  [KIND.PLACE]: (view, bytes) => {
    const slot = slotIn(view, WORD_BYTES);
    const first = slot === undefined ? 0 : view.getUint16(8, true);
    if (slot === undefined || first >= MAX_ADDRESSES || !isZero(bytes, 10, 16)) return undefined;
    return { kind: 'PLACE', slot, first };
  },
  [KIND.SLOT]: (view, bytes) => {
    const slot = slotIn(view, SLOT_BYTES);
    if (slot === undefined || !isZero(bytes, 20, 24)) return undefined;
    const nodeGuid = view.getBigUint64(8, true);
    return { kind: 'SLOT', slot, nodeGuid, tableBytes: view.getUint32(16, true) };
  },
  [KIND.REFUSED]: (view, bytes) => {
    if (view.byteLength !== WORD_BYTES || !isZero(bytes, 6, 8) || !isZero(bytes, 10, 16)) {
      return undefined;
    }
    const reason = REFUSALS[view.getUint16(8, true)];
    return reason && { kind: 'REFUSED', reason };
  },
  [KIND.PACKET]: parsePacket,
  [KIND.GOODBYE]: (view) => {
    const slot = slotIn(view, HEADER_BYTES);
    return slot === undefined ? undefined : { kind: 'GOODBYE', slot };
  },
};

function parsePacket(view: DataView, bytes: Uint8Array): PacketMessage | undefined {
  if (bytes.length < PACKET_BYTES + LEAST_PACKET_BYTES || bytes.length > MAX_BYTES)
    return undefined;
  const slot = slotIn(view, bytes.length);
  const localGidIndex = view.getUint8(10);
  const sourcePort = view.getUint16(8, true);
  if (slot === undefined || localGidIndex >= MAX_ADDRESSES || !isZero(bytes, 11, 16)) {
    return undefined;
  }
  const packet: HandedPacket = {
    sourceGid: new Uint8Array(bytes.subarray(16, 16 + GID_BYTES)),
    sourcePort,
    localGidIndex,
    bytes: new Uint8Array(bytes.subarray(PACKET_BYTES)),
  };
  return { kind: 'PACKET', slot, packet };
}

function slotIn(view: DataView, length: number): number | undefined {
  if (view.byteLength !== length) return undefined;
  const slot = view.getUint16(6, true);
  return slot < MAX_SLOTS ? slot : undefined;
}

function isZero(bytes: Uint8Array, from: number, to: number): boolean {
  return bytes.subarray(from, to).every((byte) => byte === 0);
}
