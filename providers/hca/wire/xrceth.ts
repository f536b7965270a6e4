/** XRC Extended Transport Header, 4 bytes: the SRQ a request is for (IBTA annex A14). */

export const XRCETH_LENGTH = 4;

/** XRC SRQ number on the responder, 24 bits. */
export function xrcethSrqn(view: DataView, offset: number): number {
  return view.getUint32(offset) & 0xffffff;
}

export function writeXrceth(view: DataView, offset: number, srqn: number): void {
  view.setUint32(offset, srqn & 0xffffff);
}
