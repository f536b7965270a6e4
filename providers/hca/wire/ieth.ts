/** Invalidate Extended Transport Header, 4 bytes (IBTA 9.3.7): the R_Key to invalidate. */

export const IETH_LENGTH = 4;

export function iethRkey(view: DataView, offset: number): number {
  return view.getUint32(offset);
}

export function writeIeth(view: DataView, offset: number, rkey: number): void {
  view.setUint32(offset, rkey);
}
