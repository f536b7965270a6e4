/** Immediate data, 4 bytes (IBTA 9.3.6): opaque, carried and returned as a u32 in wire order. */
import { word } from '../../../core/spi/wire/field.js';

export const immdtValue = word(0);
