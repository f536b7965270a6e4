/** What is wrong with a call on a CNO, as DatError. */
import { DatError } from '../../errors/index.js';
import type { Cno } from './cno.js';
import { type AsyncErrorEvent, AsyncErrorReason, DatEventNumber } from '../events/event.js';
import { checkValue } from '../../errors/guards.js';
import { kindOf } from '../../spi/checks/index.js';

export function freedCno(operation: string): DatError {
  return new DatError('DAT_INVALID_HANDLE', {
    subtype: 'DAT_INVALID_HANDLE_CNO',
    operation,
    message: 'the CNO has been freed',
  });
}

/** What a waiter gets when its CNO ends. */
export function deadCno(): DatError {
  return new DatError('DAT_INVALID_STATE', {
    subtype: 'DAT_INVALID_STATE_CNO_DEAD',
    operation: 'cno.wait',
    message: 'the CNO has ended',
  });
}

export function cnoInUse(evds: number, waiters: number): DatError {
  return new DatError('DAT_INVALID_STATE', {
    subtype: 'DAT_INVALID_STATE_CNO_IN_USE',
    operation: 'cno.free',
    message: `${evds} EVDs notify this CNO, and ${waiters} waiters wait for it`,
    value: { evds, waiters },
    hint: 'evd.modifyCno(null), and let the waiters end, first',
  });
}

/** DAT says QUEUE_EMPTY where an EVD says TIMEOUT_EXPIRED (DAT facts 1.2). */
export function cnoTimeout(timeoutMs: number): DatError {
  return new DatError('DAT_QUEUE_EMPTY', {
    operation: 'cno.wait',
    message: `no EVD has notified within ${timeoutMs} ms`,
    value: { timeoutMs },
  });
}

/** @throws DatError DAT_INVALID_PARAMETER unless null or a function */
export function checkAgent(operation: string, agent: unknown): void {
  checkValue(operation, 2, 'agent', agent, AGENT);
}

const AGENT = kindOf(
  'a function or null',
  (agent) => agent === null || typeof agent === 'function',
);

/** What the asynchronous EVD hears of an agent that throws. */
export function agentFailed(cno: Cno, cause: unknown): AsyncErrorEvent {
  return {
    type: 'async-error',
    number: DatEventNumber.ASYNC_PROVIDER_INTERNAL_ERROR,
    object: cno,
    reason: AsyncErrorReason.OTHER.OTHER,
    message: `cno ${cno.id}: the agent has failed`,
    cause,
  };
}
