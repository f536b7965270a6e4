/** RDMA Extended Transport Header, 16 bytes (IBTA 9.3.3). Addresses are two u32: hi, lo. */
import { word } from '../../../core/spi/wire/field.js';

export const rethVaHi = word(0);
export const rethVaLo = word(4);
export const rethRkey = word(8);
/** Length of the whole message in bytes, as sent: compare with MAX_MESSAGE_BYTES before use. */
export const rethDmaLength = word(12);

export function writeReth(
  view: DataView,
  offset: number,
  vaHi: number,
  vaLo: number,
  rkey: number,
  dmaLengthBytes: number,
): void {
  view.setUint32(offset, vaHi);
  view.setUint32(offset + 4, vaLo);
  view.setUint32(offset + 8, rkey);
  view.setUint32(offset + 12, dmaLengthBytes);
}
