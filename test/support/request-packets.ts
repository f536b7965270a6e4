/** Packets of a peer that a test makes by hand. */

/** A packet for queue pair `qpn`: BTH, then extension headers and payload. */
export function packet(
  opcode: number,
  qpn: number,
  psn: number,
  rest: readonly number[],
  asksForAck = false,
): Uint8Array {
  const bytes = new Uint8Array(12 + rest.length);
  const view = new DataView(bytes.buffer);
  bytes[0] = opcode;
  view.setUint16(2, 0xffff);
  view.setUint32(4, qpn);
  view.setUint32(8, psn);
  if (asksForAck) bytes[8] = 0x80;
  bytes.set(rest, 12);
  return bytes;
}

/** RETH or the first half of AtomicETH: address, key, and a length. */
export function reth(address: bigint, rkey: number, length: number): number[] {
  const view = new DataView(new ArrayBuffer(16));
  view.setBigUint64(0, address);
  view.setUint32(8, rkey);
  view.setUint32(12, length);
  return [...new Uint8Array(view.buffer)];
}
