/** What is wrong with a call on an EVD: options, policies and states, as DatError. */

import { DatError, show } from '../errors/index.js';
import type { PollingMode } from '../spi/index.js';
import { checkInteger, checkOptions, checkParameter } from './common/checks.js';
import { ALL_STREAMS } from './common/evd-states.js';
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
