/** Datagram Extended Transport Header, 8 bytes (IBTA 9.3.2). */

export const DETH_LENGTH = 8;

const field = { qkey: 0, srcQpnWord: 4 } as const;

export function dethQkey(view: DataView, offset: number): number {
  return view.getUint32(offset + field.qkey);
}

/** Source QPN, 24 bits. */
export function dethSrcQpn(view: DataView, offset: number): number {
  return view.getUint32(offset + field.srcQpnWord) & 0xffffff;
}

export function writeDeth(view: DataView, offset: number, qkey: number, srcQpn: number): void {
  view.setUint32(offset + field.qkey, qkey);
  view.setUint32(offset + field.srcQpnWord, srcQpn & 0xffffff);
}
