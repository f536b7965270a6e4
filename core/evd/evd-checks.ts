/** Checks of the calls on an EVD: options, policies and states, as DatError. */

import { DatError } from '../errors/index.js';
import { checkInteger, checkOptions, checkValue, invalidArgument } from '../errors/guards.js';
import { FUNCTION, isBitSet, isInteger, kindOf, oneOf } from '../spi/checks/index.js';
import type { PollingMode } from '../spi/index.js';
import { ALL_STREAMS } from './common/evd-states.js';
import type { EvdOptions } from './evd-host.js';
import { type PendingChoice, UPCALL_POLICIES, type UpcallPolicy } from './upcall/policy.js';

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
  checkInteger('ia.createEvd', 'qlen', qlen, 1, limit);
}

/** @throws DatError DAT_INVALID_PARAMETER unless a non-empty set of EvdFlags */
export function checkStreams(streams: unknown): void {
  checkValue('ia.createEvd', 'streams', streams, STREAMS);
}

/** @throws DatError DAT_INVALID_PARAMETER */
export function checkUpcall(
  operation: string,
  policy: UpcallPolicy,
  handler: unknown,
  limit: number | undefined,
): void {
  checkValue(operation, 'policy', policy, POLICY);
  const needsHandler = UPCALL_POLICIES[policy].enabled;
  if (handler !== undefined || needsHandler) {
    checkValue(operation, `the handler of policy ${policy}`, handler, FUNCTION, 'handler');
  }
  if (limit === undefined) return;
  checkInteger(operation, 'limit', limit, 1, MAX_UPCALL_LIMIT);
  if (UPCALL_POLICIES[policy].limit === undefined) return;
  const why = `policy ${policy} has a limit of its own`;
  throw invalidArgument(
    operation,
    'limit',
    `limit ${limit}: ${why}; leave it out, or say MANY`,
    limit,
  );
}

/** Checks the options of a new EVD, without creating anything. */
export function checkEvdOptions(operation: string, options: EvdOptions): void {
  checkOptions(operation, options, EVD_OPTIONS);
  const { policy = 'DISABLE', handler, limit, polling = 'event' } = options;
  checkUpcall(operation, policy, handler, limit);
  checkPolling(operation, polling);
}

/** @throws DatError DAT_INVALID_PARAMETER */
export function checkPolling(operation: string, mode: unknown): void {
  checkValue(operation, 'polling', mode, POLLING);
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

/** @throws DatError DAT_INVALID_PARAMETER */
export function checkPending(policy: UpcallPolicy, pending: unknown): void {
  if (pending === undefined) return;
  const operation = 'evd.modifyUpcall';
  checkValue(operation, 'pending', pending, PENDING);
  if (UPCALL_POLICIES[policy].enabled) return;
  const why = `policy ${policy} starts no upcalls, and events wait in any case`;
  throw invalidArgument(
    operation,
    'pending',
    `pending '${String(pending)}': ${why}; leave it out`,
    pending,
  );
}

const STREAMS = kindOf(
  'a non-empty set of EvdFlags',
  (streams) => streams !== 0 && isBitSet(streams, ALL_STREAMS),
);
const POLICY = oneOf(Object.keys(UPCALL_POLICIES));
const POLLING = oneOf<PollingMode>(['event', 'adaptive', 'spin']);
const PENDING = oneOf<PendingChoice>(['deliver', 'keep', 'refuse']);
