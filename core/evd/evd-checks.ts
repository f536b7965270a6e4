/** What is wrong with a call on an EVD: options, policies and states, as DatError. */

import { DatError } from '../errors/index.js';
import { checkInteger, checkOptions, checkValue } from '../errors/guards.js';
import { FUNCTION, isBitSet, isInteger, kindOf, oneOf } from '../spi/checks/index.js';
import type { PollingMode } from '../spi/index.js';
import { ALL_STREAMS } from './common/evd-states.js';
import type { EvdOptions } from './evd-host.js';
import {
  DEFAULT_UPCALL_LIMIT,
  type PendingChoice,
  UPCALL_POLICIES,
  type UpcallPolicy,
} from './upcall/policy.js';

const MAX_UPCALL_LIMIT = 65536;
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

/** @throws DatError DAT_INVALID_PARAMETER, or DAT_INSUFFICIENT_RESOURCES beyond the device */
export function checkQlen(qlen: number, limit: number): void {
  if (isInteger(qlen, limit + 1, Infinity)) {
    throw new DatError('DAT_INSUFFICIENT_RESOURCES', {
      subtype: 'DAT_RESOURCE_TEVD',
      operation: 'ia.createEvd',
      message: `qlen ${qlen}: the device has queues of ${limit} events`,
      value: qlen,
    });
  }
  checkInteger('ia.createEvd', 2, 'qlen', qlen, 1, limit);
}

/** @throws DatError DAT_INVALID_PARAMETER unless a non-empty set of EvdFlags */
export function checkStreams(streams: unknown): void {
  checkValue('ia.createEvd', 4, 'streams', streams, STREAMS);
}

/** @throws DatError DAT_INVALID_PARAMETER */
export function checkUpcall(
  operation: string,
  policy: UpcallPolicy,
  handler: unknown,
  limit: number,
): void {
  checkValue(operation, 2, 'policy', policy, POLICY);
  const needsHandler = UPCALL_POLICIES[policy].enabled;
  if (handler !== undefined || needsHandler) {
    checkValue(operation, 3, `the handler of policy ${policy}`, handler, FUNCTION);
  }
  checkInteger(operation, 4, 'limit', limit, 1, MAX_UPCALL_LIMIT);
}

/** What can be seen of the options of a new EVD without making anything. */
export function checkEvdOptions(operation: string, options: EvdOptions): void {
  checkOptions(operation, 2, options, EVD_OPTIONS);
  const { policy = 'DISABLE', handler, limit = DEFAULT_UPCALL_LIMIT, polling = 'event' } = options;
  checkUpcall(operation, policy, handler, limit);
  checkPolling(operation, polling);
}

/** @throws DatError DAT_INVALID_PARAMETER */
export function checkPolling(operation: string, mode: unknown): void {
  checkValue(operation, 2, 'polling', mode, POLLING);
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
    hint: 'evd.clearUnwaitable() makes it waitable again',
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

/** @throws DatError DAT_INVALID_PARAMETER */
export function checkPending(pending: unknown): void {
  checkValue('evd.modifyUpcall', 4, 'pending', pending, PENDING);
}

const STREAMS = kindOf(
  'a non-empty set of EvdFlags',
  (streams) => streams !== 0 && isBitSet(streams, ALL_STREAMS),
);
const POLICY = oneOf(Object.keys(UPCALL_POLICIES));
const POLLING = oneOf<PollingMode>(['event', 'adaptive', 'spin']);
const PENDING = oneOf<PendingChoice>(['deliver', 'keep', 'refuse']);
