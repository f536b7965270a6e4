/** ACK Extended Transport Header, 4 bytes: syndrome and MSN (IBTA 9.3.5). */

export const AETH_LENGTH = 4;

const field = { syndrome: 0, msnWord: 0 } as const;

export function aethSyndrome(view: DataView, offset: number): number {
  return view.getUint8(offset + field.syndrome);
}

/** Message sequence number: requests completed by the responder, modulo 2^24. */
export function aethMsn(view: DataView, offset: number): number {
  return view.getUint32(offset + field.msnWord) & 0xffffff;
}

/** @param syndrome 8 bits, see aeth-syndrome.ts; @param msn 24 bits, higher bits are cut off */
export function writeAeth(view: DataView, offset: number, syndrome: number, msn: number): void {
  view.setUint32(offset + field.msnWord, ((syndrome & 0xff) << 24) | (msn & 0xffffff));
}
