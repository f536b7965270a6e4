/** The 5-bit times of CM messages and QP attributes: 4.096 us * 2^code (IBTA 12.7.4). */
import { checkInteger, outOfRange } from '../../../core/spi/checks/index.js';

export const MAX_TIME_CODE = 31;

const UNIT_US = 4.096;

/**
 * Microseconds of a code. Where 0 means "never" (the ACK timeout of a QP), that is the caller's.
 * @throws RangeError unless 0 to 31
 */
export function timeUsOfCode(code: number): number {
  checkInteger('time code', code, 0, MAX_TIME_CODE, outOfRange);
  return UNIT_US * 2 ** code;
}
