/** Readers of header fields: they trust the offset of the header in the view. */

export type FieldReader = (view: DataView, offset: number) => number;

/** The 32-bit word that begins `at` bytes into the header. */
export const word =
  (at: number): FieldReader =>
  (view, offset) =>
    view.getUint32(offset + at);

/** The lower 24 bits of such a word. */
export const lower24 =
  (at: number): FieldReader =>
  (view, offset) =>
    view.getUint32(offset + at) & 0xffffff;
