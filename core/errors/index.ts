/** Errors of the DAT API. */
export {
  DAT_SUBTYPES,
  DAT_TYPES,
  DatClass,
  type DatSubtype,
  type DatSubtypeKey,
  type DatType,
  decodeReturnCode,
  describeCode,
  returnCodeOf,
} from './dat/codes.js';
export { DatError, type DatErrorOptions } from './dat/dat-error.js';
export { spiCall, toDatError } from './from-spi.js';
export { type DatErrorText, datStrError } from './strerror.js';
