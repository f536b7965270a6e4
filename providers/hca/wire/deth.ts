/** Datagram Extended Transport Header, 8 bytes (IBTA 9.3.2). */
import { lower24, word } from '../../../core/spi/wire/field.js';

export const DETH_LENGTH = 8;

export const dethQkey = word(0);
/** Source QPN, 24 bits. */
export const dethSrcQpn = lower24(4);

export function writeDeth(view: DataView, offset: number, qkey: number, srcQpn: number): void {
  view.setUint32(offset, qkey);
  view.setUint32(offset + 4, srcQpn & 0xffffff);
}
