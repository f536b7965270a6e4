/** Failures of an event dispatcher, as asynchronous errors that name it: a table. */
import {
  type AsyncErrorEvent,
  type AsyncErrorNumber,
  AsyncErrorReason,
  DatEventNumber,
} from './events/event.js';
import type { Evd } from './evd.js';
import { leaveUnhandled } from '../spi/index.js';

interface EvdErrorRow {
  readonly number: AsyncErrorNumber;
  readonly reason: number;
  /** For people; `%` is the detail. */
  readonly sentence: string;
}

const { ASYNC_EVD_OVERFLOW, ASYNC_PROVIDER_INTERNAL_ERROR } = DatEventNumber;
const { OVERFLOW, OTHER } = AsyncErrorReason.EVD;
const other = (sentence: string): EvdErrorRow => ({
  number: ASYNC_PROVIDER_INTERNAL_ERROR,
  reason: OTHER,
  sentence,
});
const overflow = (sentence: string): EvdErrorRow => ({
  number: ASYNC_EVD_OVERFLOW,
  reason: OVERFLOW,
  sentence,
});

const EVD_ERRORS = {
  unreadable: other('the completion queue cannot be read'),
  unarmable: other('the completion queue cannot be armed'),
  overrun: overflow('the completion queue overran; its endpoints are broken'),
  other: other('% on the completion queue'),
  handler: other('the upcall handler has failed'),
  overflow: overflow('more than % events wait; the last is lost'),
} as const satisfies Readonly<Record<string, EvdErrorRow>>;

export type EvdErrorKind = keyof typeof EVD_ERRORS;

export interface EvdErrorDetails {
  readonly detail?: string | number;
  readonly cause?: unknown;
}

export function evdError(
  object: Evd,
  kind: EvdErrorKind,
  { detail = '', cause }: EvdErrorDetails = {},
): AsyncErrorEvent {
  const { number, reason, sentence } = EVD_ERRORS[kind];
  const message = `evd ${object.id}: ${sentence.replace('%', String(detail))}`;
  return {
    type: 'async-error',
    number,
    object,
    reason,
    message,
    ...(cause !== undefined && { cause }),
  };
}

// Reports an error of the consumer's own code that no other part of the program would see.

/**
 * Rejects a promise without a handler. That ends a Node process unless it listens for
 * `unhandledRejection` or `uncaughtException`.
 */
export function unhandled(error: unknown): void {
  leaveUnhandled(
    Promise.reject(error instanceof Error ? error : new Error(String(error), { cause: error })),
  );
}
