/**
 * AtomicETH, 28 bytes, in CmpSwap and FetchAdd requests (IBTA 9.3.4), and AtomicAckETH, 8 bytes,
 * in their acknowledge (IBTA 9.5.6). 64-bit quantities are two u32: hi, lo.
 */

export const ATOMIC_ETH_LENGTH = 28;
export const ATOMIC_ACK_ETH_LENGTH = 8;

const field = {
  vaHi: 0,
  vaLo: 4,
  rkey: 8,
  swapAddHi: 12,
  swapAddLo: 16,
  compareHi: 20,
  compareLo: 24,
} as const;

export function atomicVaHi(view: DataView, offset: number): number {
  return view.getUint32(offset + field.vaHi);
}

/** An address whose low 3 bits are not zero is an invalid request. */
export function atomicVaLo(view: DataView, offset: number): number {
  return view.getUint32(offset + field.vaLo);
}

export function atomicRkey(view: DataView, offset: number): number {
  return view.getUint32(offset + field.rkey);
}

/** High half of the value to swap in (CmpSwap) or to add (FetchAdd). */
export function atomicSwapAddHi(view: DataView, offset: number): number {
  return view.getUint32(offset + field.swapAddHi);
}

export function atomicSwapAddLo(view: DataView, offset: number): number {
  return view.getUint32(offset + field.swapAddLo);
}

/** High half of the value to compare with; meaningless for FetchAdd. */
export function atomicCompareHi(view: DataView, offset: number): number {
  return view.getUint32(offset + field.compareHi);
}

export function atomicCompareLo(view: DataView, offset: number): number {
  return view.getUint32(offset + field.compareLo);
}

/** Writes all 28 bytes. FetchAdd passes 0 for the two compare words. */
export function writeAtomicEth(
  view: DataView,
  offset: number,
  vaHi: number,
  vaLo: number,
  rkey: number,
  swapAddHi: number,
  swapAddLo: number,
  compareHi: number,
  compareLo: number,
): void {
  view.setUint32(offset + field.vaHi, vaHi);
  view.setUint32(offset + field.vaLo, vaLo);
  view.setUint32(offset + field.rkey, rkey);
  view.setUint32(offset + field.swapAddHi, swapAddHi);
  view.setUint32(offset + field.swapAddLo, swapAddLo);
  view.setUint32(offset + field.compareHi, compareHi);
  view.setUint32(offset + field.compareLo, compareLo);
}

/** High half of the remote value before the operation. */
export function atomicAckHi(view: DataView, offset: number): number {
  return view.getUint32(offset);
}

export function atomicAckLo(view: DataView, offset: number): number {
  return view.getUint32(offset + 4);
}

export function writeAtomicAckEth(
  view: DataView,
  offset: number,
  originalHi: number,
  originalLo: number,
): void {
  view.setUint32(offset, originalHi);
  view.setUint32(offset + 4, originalLo);
}
