/** What is wrong with a call, as DatError: parameters, and the taker of events. */

import { DatError, type DatSubtype, show } from '../../errors/index.js';
import {
  EVD_CONFIGURATIONS,
  EVD_TAKERS,
  type EvdConfiguration,
  type EvdTaker,
} from './evd-states.js';

/** @throws DatError DAT_INVALID_STATE when the present taker does not admit the new one */
export function checkTaker(operation: string, present: EvdTaker, wanted: EvdTaker): void {
  const row = EVD_TAKERS[present];
  if (row.admits.includes(wanted)) return;
  throw new DatError('DAT_INVALID_STATE', {
    ...(row.subtype !== undefined && { subtype: row.subtype }),
    operation,
    message: `${row.text} takes the events of this EVD, so ${EVD_TAKERS[wanted].text} cannot`,
    value: present,
    hint: present === 'subscription' ? 'use share() for several subscribers' : 'end it first',
  });
}

/** @throws DatError DAT_INVALID_STATE when a stream has a subscriber already */
export function checkSubscriber(operation: string, present: boolean): void {
  if (!present) return;
  throw new DatError('DAT_INVALID_STATE', {
    operation,
    message: 'there is a subscriber already',
    value: 'subscription',
    hint: 'use share() for several subscribers',
  });
}

/** @throws DatError DAT_INVALID_PARAMETER or DAT_INVALID_STATE */
export function checkThreshold(
  threshold: number,
  qlen: number,
  configuration: EvdConfiguration,
): void {
  checkInteger('evd.wait', 'threshold', threshold, 1, qlen, 'DAT_INVALID_ARG3');
  const row = EVD_CONFIGURATIONS[configuration];
  if (threshold === 1 || row.threshold) return;
  throw new DatError('DAT_INVALID_STATE', {
    subtype: row.subtype,
    operation: 'evd.wait',
    message: `threshold ${threshold}: must be 1 while the EVD is in ${configuration} mode`,
    value: threshold,
  });
}

/** @throws DatError DAT_INVALID_PARAMETER unless undefined, Infinity or a number >= 0 */
export function checkTimeout(operation: string, timeoutMs: number | undefined): void {
  if (timeoutMs === undefined || (typeof timeoutMs === 'number' && timeoutMs >= 0)) return;
  throw new DatError('DAT_INVALID_PARAMETER', {
    subtype: 'DAT_INVALID_ARG2',
    operation,
    message: `timeoutMs ${show(timeoutMs)}: must be 0 or more`,
    value: timeoutMs,
  });
}

/** @throws DatError DAT_INVALID_PARAMETER unless an integer within the bounds */
export function checkInteger(
  operation: string,
  name: string,
  value: number,
  min: number,
  max: number,
  subtype: DatSubtype,
): void {
  if (Number.isSafeInteger(value) && value >= min && value <= max) return;
  throw new DatError('DAT_INVALID_PARAMETER', {
    subtype,
    operation,
    message: `${name} ${show(value)}: must be an integer from ${min} to ${max}`,
    value,
  });
}

/** @throws DatError DAT_INVALID_PARAMETER unless the condition holds */
export function checkParameter(
  operation: string,
  name: string,
  value: unknown,
  holds: boolean,
  expected: string,
  subtype: DatSubtype,
): void {
  if (holds) return;
  const message = `${name} ${show(value)}: must be ${expected}`;
  throw new DatError('DAT_INVALID_PARAMETER', { subtype, operation, message, value });
}

/** @throws DatError DAT_INVALID_PARAMETER unless an object without unknown keys */
export function checkOptions(
  operation: string,
  options: unknown,
  subtype: DatSubtype,
  known: readonly string[],
): void {
  const isObject = typeof options === 'object' && options !== null;
  checkParameter(operation, 'options', options, isObject, 'an object', subtype);
  const stranger = Object.keys(options as object).find((key) => !known.includes(key));
  const expected = `one of ${known.join(', ')}`;
  const isKnown = stranger === undefined;
  checkParameter(operation, 'an option', stranger, isKnown, expected, subtype);
}
