/** Immediate data, 4 bytes (IBTA 9.3.6): opaque, carried and returned as a u32 in wire order. */

export const IMMDT_LENGTH = 4;

export function immdtValue(view: DataView, offset: number): number {
  return view.getUint32(offset);
}

export function writeImmdt(view: DataView, offset: number, immediate: number): void {
  view.setUint32(offset, immediate);
}
