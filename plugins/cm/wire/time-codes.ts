/** The 5-bit times of CM messages and QP attributes: 4.096 us * 2^code (IBTA 12.7.4). */
import { checkInteger, outOfRange } from '../../../core/spi/checks/index.js';

export const MAX_TIME_CODE = 31;

const UNIT_US = 4.096;

/**
 * Microseconds of a code. Where 0 means "never" (the ACK timeout of a QP), that is the caller's.
 * @throws RangeError unless 0 to 31
 */
export function timeUsOfCode(code: number): number {
  return UNIT_US * 2 ** checked(code);
}

/**
 * Milliseconds as Linux's ib_cm reads a code: a power of two, 2.3% shorter, at least 1 ms.
 * @throws RangeError unless 0 to 31
 */
export function linuxTimeMsOfCode(code: number): number {
  return 2 ** Math.max(checked(code) - 8, 0);
}

/** The code of the shortest time that is at least `timeUs`; 31 (2.4 hours) if none is. */
export function codeOfTimeUs(timeUs: number): number {
  let code = 0;
  while (code < MAX_TIME_CODE && UNIT_US * 2 ** code < timeUs) code += 1;
  return code;
}

function checked(code: number): number {
  checkInteger('time code', code, 0, MAX_TIME_CODE, outOfRange);
  return code;
}
