/** ACK Extended Transport Header, 4 bytes: syndrome and MSN (IBTA 9.3.5). */
import { lower24 } from '../../../core/spi/wire/field.js';

export const AETH_LENGTH = 4;

export function aethSyndrome(view: DataView, offset: number): number {
  return view.getUint8(offset);
}

/** Message sequence number: requests completed by the responder, modulo 2^24. */
export const aethMsn = lower24(0);

/** @param syndrome 8 bits, see aeth-syndrome.ts; @param msn 24 bits, higher bits are cut off */
export function writeAeth(view: DataView, offset: number, syndrome: number, msn: number): void {
  view.setUint32(offset, ((syndrome & 0xff) << 24) | (msn & 0xffffff));
}
