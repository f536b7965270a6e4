/** Encodes pcapng blocks (draft-ietf-opsawg-pcapng), little-endian, without I/O. */

export const BlockType = {
  SECTION_HEADER: 0x0a0d0d0a,
  INTERFACE_DESCRIPTION: 1,
  ENHANCED_PACKET: 6,
} as const;
const BYTE_ORDER_MAGIC = 0x1a2b3c4d;
/** Raw IP: the packet begins with an IPv4 or IPv6 header. */
const LINKTYPE_RAW = 101;
const OPTION_END = 0;
const OPTION_COMMENT = 1;
const IF_NAME = 2;
const EPB_FLAGS = 2;
const SHB_USERAPPL = 4;

export const Direction = { INBOUND: 1, OUTBOUND: 2 } as const;
export type Direction = (typeof Direction)[keyof typeof Direction];

/** The section header, which begins a file. */
export function sectionHeader(application: string): Uint8Array {
  const options = [...textOption(SHB_USERAPPL, application), OPTION_END, 0, 0, 0];
  const body = new Uint8Array(16 + options.length);
  const view = new DataView(body.buffer);
  view.setUint32(0, BYTE_ORDER_MAGIC, true);
  view.setUint16(4, 1, true);
  // The length of the section is unknown.
  view.setBigInt64(8, -1n, true);
  body.set(options, 16);
  return block(BlockType.SECTION_HEADER, body);
}

/**
 * True if blocks may be appended to the section: it has this version and byte order, and states no
 * length.
 */
export function goesOn(header: DataView): boolean {
  return (
    header.byteLength >= 28 &&
    header.getUint32(8, true) === BYTE_ORDER_MAGIC &&
    header.getUint16(12, true) === 1 &&
    header.getBigInt64(16, true) === -1n
  );
}

/**
 * An interface description; packets refer to it by its index in the file. Times are in
 * microseconds.
 */
export function interfaceDescription(name: string): Uint8Array {
  const options = [...textOption(IF_NAME, name), OPTION_END, 0, 0, 0];
  const body = new Uint8Array(8 + options.length);
  new DataView(body.buffer).setUint16(0, LINKTYPE_RAW, true);
  body.set(options, 8);
  return block(BlockType.INTERFACE_DESCRIPTION, body);
}

/** Bytes of a packet's block without the packet itself and its padding. */
const PACKET_OVERHEAD = 28 + 16;

/**
 * Size of the block of a packet of `length` bytes.
 * @param comment of the packet; '' for none
 */
export function packetBlockBytes(length: number, comment: string): number {
  return PACKET_OVERHEAD + pad(length) + commentOption(comment).length;
}

function commentOption(comment: string): number[] {
  return comment === '' ? [] : textOption(OPTION_COMMENT, comment);
}

/**
 * Writes the block of a packet that `target` already holds, from `at` + 28 on.
 * @param timeUs since 1970
 * @param comment as in `packetBlockBytes`
 * @returns the offset of the next block
 */
export function packetBlock(
  target: DataView,
  at: number,
  length: number,
  interfaceId: number,
  timeUs: number,
  direction: Direction,
  comment: string,
): number {
  const bytes = packetBlockBytes(length, comment);
  target.setUint32(at, BlockType.ENHANCED_PACKET, true);
  target.setUint32(at + 4, bytes, true);
  target.setUint32(at + 8, interfaceId, true);
  target.setUint32(at + 12, Math.floor(timeUs / 2 ** 32), true);
  target.setUint32(at + 16, timeUs % 2 ** 32, true);
  target.setUint32(at + 20, length, true);
  target.setUint32(at + 24, length, true);
  let end = at + PACKET_DATA + length;
  while ((end - at) % 4 !== 0) target.setUint8(end++, 0);
  for (const byte of commentOption(comment)) target.setUint8(end++, byte);
  target.setUint16(end, EPB_FLAGS, true);
  target.setUint16(end + 2, 4, true);
  target.setUint32(end + 4, direction, true);
  target.setUint32(end + 8, OPTION_END, true);
  target.setUint32(end + 12, bytes, true);
  return end + 16;
}

/** Offset of the packet in its block. */
export const PACKET_DATA = 28;

function block(type: number, body: Uint8Array): Uint8Array {
  const length = 12 + body.length;
  const bytes = new Uint8Array(length);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, type, true);
  view.setUint32(4, length, true);
  bytes.set(body, 8);
  view.setUint32(length - 4, length, true);
  return bytes;
}

function textOption(code: number, text: string): number[] {
  const bytes = new TextEncoder().encode(text).subarray(0, 0xffff);
  const padding = new Array<number>(pad(bytes.length) - bytes.length).fill(0);
  return [code, 0, bytes.length & 0xff, bytes.length >> 8, ...bytes, ...padding];
}

function pad(length: number): number {
  return (length + 3) & ~3;
}
