/**
 * AtomicETH, 28 bytes, in CmpSwap and FetchAdd requests (IBTA 9.3.4), and AtomicAckETH, 8 bytes,
 * in their acknowledge (IBTA 9.5.6). 64-bit quantities are two u32: hi, lo.
 */
import { word } from '../../../core/spi/wire/field.js';

export const atomicVaHi = word(0);
/** An address whose low 3 bits are not zero is an invalid request. */
export const atomicVaLo = word(4);
export const atomicRkey = word(8);
/** The value to swap in (CmpSwap) or to add (FetchAdd). */
export const atomicSwapAddHi = word(12);
export const atomicSwapAddLo = word(16);
/** The value to compare with; meaningless for FetchAdd. */
export const atomicCompareHi = word(20);
export const atomicCompareLo = word(24);

/** The first 12 bytes of an AtomicETH; `writeAtomicOperands` writes the rest. */
export function writeAtomicTarget(
  view: DataView,
  offset: number,
  vaHi: number,
  vaLo: number,
  rkey: number,
): void {
  view.setUint32(offset, vaHi);
  view.setUint32(offset + 4, vaLo);
  view.setUint32(offset + 8, rkey);
}

/** FetchAdd passes 0 for what to compare with. @param offset of the AtomicETH */
export function writeAtomicOperands(
  view: DataView,
  offset: number,
  swapAddHi: number,
  swapAddLo: number,
  compareHi: number,
  compareLo: number,
): void {
  view.setUint32(offset + 12, swapAddHi);
  view.setUint32(offset + 16, swapAddLo);
  view.setUint32(offset + 20, compareHi);
  view.setUint32(offset + 24, compareLo);
}

/** The remote value before the operation. */
export const atomicAckHi = word(0);
export const atomicAckLo = word(4);

export function writeAtomicAckEth(
  view: DataView,
  offset: number,
  originalHi: number,
  originalLo: number,
): void {
  view.setUint32(offset, originalHi);
  view.setUint32(offset + 4, originalLo);
}
