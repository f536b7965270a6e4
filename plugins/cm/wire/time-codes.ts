/** The 5-bit times of CM messages and QP attributes: 4.096 us * 2^code (IBTA 12.7.4). */

export const MAX_TIME_CODE = 31;

const UNIT_US = 4.096;

/**
 * Microseconds of a code. Where 0 means "never" (the ACK timeout of a QP), that is the caller's.
 * @throws RangeError unless 0 to 31
 */
export function timeUsOfCode(code: number): number {
  if (!Number.isInteger(code) || code < 0 || code > MAX_TIME_CODE) {
    throw new RangeError(`time code is ${code}, must be an integer from 0 to ${MAX_TIME_CODE}`);
  }
  return UNIT_US * 2 ** code;
}
