/** What is wrong with a call on an EVD: parameters and states, as DatError. */

import { DatError, type DatSubtype, show } from '../errors/index.js';
import type { PollingMode } from '../spi/index.js';
import {
  ALL_STREAMS,
  EVD_CONFIGURATIONS,
  EVD_TAKERS,
  type EvdConfiguration,
  type EvdTaker,
} from './evd-states.js';
import type { EvdOptions } from './evd-host.js';
import {
  DEFAULT_UPCALL_LIMIT,
  type PendingChoice,
  UPCALL_POLICIES,
  type UpcallPolicy,
} from './upcall/policy.js';

const MAX_UPCALL_LIMIT = 65536;
const POLLING_MODES = ['event', 'adaptive', 'spin'] as const satisfies readonly PollingMode[];
const EVD_OPTIONS: readonly (keyof EvdOptions)[] = [
  'qlen',
  'streams',
  'policy',
  'handler',
  'limit',
  'polling',
  'cno',
  'id',
];

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

/** @throws DatError DAT_INVALID_PARAMETER, or DAT_INSUFFICIENT_RESOURCES beyond the device */
export function checkQlen(qlen: number, limit: number): void {
  if (Number.isSafeInteger(qlen) && qlen > limit) {
    throw new DatError('DAT_INSUFFICIENT_RESOURCES', {
      subtype: 'DAT_RESOURCE_TEVD',
      operation: 'ia.createEvd',
      message: `qlen ${qlen}: the device has queues of ${limit} events`,
      value: qlen,
      hint: 'the adapter attribute maxEvdQlen tells the limit',
    });
  }
  checkInteger('ia.createEvd', 'qlen', qlen, 1, limit, 'DAT_INVALID_ARG2');
}

/** @throws DatError DAT_INVALID_PARAMETER unless a non-empty set of EvdFlags */
export function checkStreams(streams: number): void {
  if (
    Number.isSafeInteger(streams) &&
    streams > 0 &&
    streams <= ALL_STREAMS &&
    (streams & ~ALL_STREAMS) === 0
  )
    return;
  throw new DatError('DAT_INVALID_PARAMETER', {
    subtype: 'DAT_INVALID_ARG4',
    operation: 'ia.createEvd',
    message: `streams ${show(streams)}: must be a non-empty set of EvdFlags`,
    value: streams,
  });
}

/** @throws DatError DAT_INVALID_PARAMETER */
export function checkUpcall(
  operation: string,
  policy: UpcallPolicy,
  handler: unknown,
  limit: number,
): void {
  if (typeof policy !== 'string' || !Object.hasOwn(UPCALL_POLICIES, policy)) {
    const known = Object.keys(UPCALL_POLICIES).join(', ');
    throw new DatError('DAT_INVALID_PARAMETER', {
      subtype: 'DAT_INVALID_ARG2',
      operation,
      message: `policy ${show(policy)}: must be one of ${known}`,
      value: policy,
    });
  }
  const needsHandler = UPCALL_POLICIES[policy].enabled;
  if (handler === undefined ? needsHandler : typeof handler !== 'function') {
    throw new DatError('DAT_INVALID_PARAMETER', {
      subtype: 'DAT_INVALID_ARG3',
      operation,
      message: `policy ${policy} needs a handler function`,
      value: handler,
    });
  }
  checkInteger(operation, 'limit', limit, 1, MAX_UPCALL_LIMIT, 'DAT_INVALID_ARG4');
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

/** What can be seen of the options of a new EVD without making anything. */
export function checkEvdOptions(operation: string, options: EvdOptions): void {
  checkOptions(operation, options, 'DAT_INVALID_ARG2', EVD_OPTIONS);
  const { policy = 'DISABLE', handler, limit = DEFAULT_UPCALL_LIMIT, polling = 'event' } = options;
  checkUpcall(operation, policy, handler, limit);
  checkPolling(operation, polling);
}

/** @throws DatError DAT_INVALID_PARAMETER */
export function checkPolling(operation: string, mode: unknown): void {
  const known = (POLLING_MODES as readonly unknown[]).includes(mode);
  const expected = `one of ${POLLING_MODES.join(', ')}`;
  checkParameter(operation, 'polling', mode, known, expected, 'DAT_INVALID_ARG2');
}

export function invalidHandle(operation: string): DatError {
  return new DatError('DAT_INVALID_HANDLE', {
    subtype: 'DAT_INVALID_HANDLE_EVD_REQUEST',
    operation,
    message: 'the EVD has been freed',
  });
}

export function unwaitableError(operation: string): DatError {
  return new DatError('DAT_INVALID_STATE', {
    subtype: 'DAT_INVALID_STATE_EVD_UNWAITABLE',
    operation,
  });
}

export function freedWhileWaiting(): DatError {
  return new DatError('DAT_ABORT', {
    operation: 'evd.wait',
    message: 'the EVD has been freed',
  });
}

/**
 * A call that waits for upcalls to end, and is awaited by one of them, would wait for ever. That
 * upcall is known in the synchronous part of its handler; afterwards it must be named.
 * @param caller the upcall in progress that awaits this call
 * @throws DatError DAT_INVALID_STATE
 */
export function checkNotAwaited(operation: string, caller: string | undefined): void {
  if (caller === undefined) return;
  throw new DatError('DAT_INVALID_STATE', {
    operation,
    message: `${caller} would wait for itself: its handler awaits this call`,
    hint: 'name the upcall: upcall.teardown(), upcall.free(), or { upcall } in the options',
    value: caller,
  });
}

export function checkPending(pending: PendingChoice): void {
  const known = ['deliver', 'keep', 'refuse'].includes(pending);
  const expected = 'deliver, keep or refuse';
  checkParameter('evd.modifyUpcall', 'pending', pending, known, expected, 'DAT_INVALID_ARG4');
}
