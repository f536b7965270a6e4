/** MAD common header (IBTA 13.4.3), as far as routing needs it. */
export const METHOD_RESPONSE_BIT = 0x80;

export const baseVersionOf = (view: DataView): number => view.getUint8(0);
export const classOf = (view: DataView): number => view.getUint8(1);
export const classVersionOf = (view: DataView): number => view.getUint8(2);
export const methodOf = (view: DataView): number => view.getUint8(3);
export const hiTidOf = (view: DataView): number => view.getUint32(8);
export const loTidOf = (view: DataView): number => view.getUint32(12);
export const attributeIdOf = (view: DataView): number => view.getUint16(16);
export const attributeModifierOf = (view: DataView): number => view.getUint32(20);
/** Vendor range 2 only. */
export const ouiOf = (view: DataView): number => view.getUint32(36) & 0xffffff;
