/** RDMA Extended Transport Header, 16 bytes (IBTA 9.3.3). Addresses are two u32: hi, lo. */

export const RETH_LENGTH = 16;

const field = { vaHi: 0, vaLo: 4, rkey: 8, dmaLength: 12 } as const;

/** The largest message, and so the largest DMA length: 2^31 bytes (IBTA 9.7.1). */
export const MAX_MESSAGE_BYTES = 0x80000000;

export function rethVaHi(view: DataView, offset: number): number {
  return view.getUint32(offset + field.vaHi);
}

export function rethVaLo(view: DataView, offset: number): number {
  return view.getUint32(offset + field.vaLo);
}

export function rethRkey(view: DataView, offset: number): number {
  return view.getUint32(offset + field.rkey);
}

/** Length of the whole message in bytes, as sent: compare with `MAX_MESSAGE_BYTES` before use. */
export function rethDmaLength(view: DataView, offset: number): number {
  return view.getUint32(offset + field.dmaLength);
}

export function writeReth(
  view: DataView,
  offset: number,
  vaHi: number,
  vaLo: number,
  rkey: number,
  dmaLengthBytes: number,
): void {
  view.setUint32(offset + field.vaHi, vaHi);
  view.setUint32(offset + field.vaLo, vaLo);
  view.setUint32(offset + field.rkey, rkey);
  view.setUint32(offset + field.dmaLength, dmaLengthBytes);
}
