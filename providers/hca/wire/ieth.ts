/** Invalidate Extended Transport Header, 4 bytes (IBTA 9.3.7): the R_Key to invalidate. */
import { word } from '../../../core/spi/wire/field.js';

export const iethRkey = word(0);
