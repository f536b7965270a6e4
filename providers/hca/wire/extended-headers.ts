/** RDMA Extended Transport Header, 16 bytes (IBTA 9.3.3). Addresses are two u32: hi, lo. */
import { lower24, word } from '../../../core/spi/wire/field.js';

// XRC Extended Transport Header, 4 bytes: the SRQ a request is for (IBTA annex A14).

/** XRC SRQ number on the responder, 24 bits. */
export const xrcethSrqn = lower24(0);

export function writeXrceth(view: DataView, offset: number, srqn: number): void {
  view.setUint32(offset, srqn & 0xffffff);
}

/** Immediate data, 4 bytes (IBTA 9.3.6): opaque, carried and returned as a u32 in wire order. */
export const immdtValue = word(0);

/** Invalidate Extended Transport Header, 4 bytes (IBTA 9.3.7): the R_Key to invalidate. */
export const iethRkey = word(0);

/** Datagram Extended Transport Header, 8 bytes (IBTA 9.3.2). */
export const DETH_LENGTH = 8;

export const dethQkey = word(0);
/** Source QPN, 24 bits. */
export const dethSrcQpn = lower24(4);

export function writeDeth(view: DataView, offset: number, qkey: number, srcQpn: number): void {
  view.setUint32(offset, qkey);
  view.setUint32(offset + 4, srcQpn & 0xffffff);
}

/** ACK Extended Transport Header, 4 bytes: syndrome and MSN (IBTA 9.3.5). */
export const AETH_LENGTH = 4;

export function aethSyndrome(view: DataView, offset: number): number {
  return view.getUint8(offset);
}

/** @param syndrome 8 bits, see aeth-syndrome.ts; @param msn 24 bits, higher bits are cut off */
export function writeAeth(view: DataView, offset: number, syndrome: number, msn: number): void {
  view.setUint32(offset, ((syndrome & 0xff) << 24) | (msn & 0xffffff));
}

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

// AtomicETH, 28 bytes, in CmpSwap and FetchAdd requests (IBTA 9.3.4), and AtomicAckETH, 8 bytes,
// in their acknowledge (IBTA 9.5.6). 64-bit quantities are two u32: hi, lo.

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
