/** Checks of parameters and of the consumer of events, as DatError. */

import { checkInteger, checkValue } from '../../errors/guards.js';
import { DatError } from '../../errors/index.js';
import { numberFrom, optional, SIGNAL } from '../../spi/checks/index.js';
import {
  EVD_CONFIGURATIONS,
  EVENT_CONSUMER_KINDS,
  type EvdConfiguration,
  type EventConsumerKind,
} from './evd-states.js';

/** @throws DatError DAT_INVALID_STATE when the present consumer does not admit the new one */
export function checkTaker(
  operation: string,
  present: EventConsumerKind,
  wanted: EventConsumerKind,
): void {
  const row = EVENT_CONSUMER_KINDS[present];
  const other = EVENT_CONSUMER_KINDS[wanted];
  if (row.admits.includes(wanted)) return;
  throw new DatError('DAT_INVALID_STATE', {
    ...(row.subtype !== undefined && { subtype: row.subtype }),
    operation,
    message: `${row.text} takes the events of this EVD, so ${other.text} cannot`,
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
  checkInteger('evd.wait', 'threshold', threshold, 1, qlen);
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
export function checkTimeout(operation: string, timeoutMs: unknown): void {
  checkValue(operation, 'timeoutMs', timeoutMs, TIMEOUT);
}

/** @throws DatError DAT_INVALID_PARAMETER unless undefined or an AbortSignal */
export function checkSignal(operation: string, signal: unknown): void {
  checkValue(operation, 'signal', signal, OPTIONAL_SIGNAL);
}

const TIMEOUT = optional(numberFrom(0, Infinity));
const OPTIONAL_SIGNAL = optional(SIGNAL);
