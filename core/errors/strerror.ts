/** Describes return codes (dat_strerror). */
import { show } from '../spi/checks/index.js';
import { type DatSubtype, type DatType, decodeReturnCode, describeCode } from './dat/codes.js';
import { DatError } from './dat/dat-error.js';

export interface DatErrorText {
  /** Name of the type: `DAT_INVALID_STATE`. */
  readonly major: DatType | 'DAT_SUCCESS';
  /** Name of the subtype: `DAT_INVALID_STATE_EP_UNCONNECTED`. */
  readonly minor: DatSubtype | 'DAT_NO_SUBTYPE';
  /** Both in one line. */
  readonly text: string;
}

/**
 * The names and the meaning of a numeric return code. For a thrown error, see `DatError.code`,
 * `subtype` and `message`.
 * @param returnCode with or without its class bit
 * @throws DatError DAT_INVALID_PARAMETER for a number that is no return code
 */
export function datStrError(returnCode: number): DatErrorText {
  if ((returnCode as unknown) === 0) {
    return { major: 'DAT_SUCCESS', minor: 'DAT_NO_SUBTYPE', text: 'success' };
  }
  const isCode = Number.isInteger(returnCode) && returnCode > 0 && returnCode <= 0xffffffff;
  const decoded = isCode ? decodeReturnCode(returnCode) : undefined;
  if (decoded === undefined) {
    throw new DatError('DAT_INVALID_PARAMETER', {
      subtype: 'DAT_INVALID_ARG1',
      operation: 'datStrError',
      message: `${show(returnCode)} is no return code of DAT`,
      hint: 'pass a DatError.returnCode: class | type << 16 | subtype',
      value: returnCode,
    });
  }
  const { type, subtype } = decoded;
  return { major: type, minor: subtype ?? 'DAT_NO_SUBTYPE', text: describeCode(type, subtype) };
}
