/** FlowError: the error of every call of `dapl/flow`, thrown or rejected. */
import { DatError, type DatType } from '../errors/index.js';
import type { ConnectionCause } from '../evd/index.js';
import { mustBe, oneLine, type Refuse, show } from '../spi/checks/index.js';

const BRAND = Symbol.for('dapl:FlowError');

/** Outcomes of a connection, each with its text for people. */
export const CONNECTION_CODES = {
  DAT_CONN_REFUSED: 'nothing listens there, or it has no room',
  DAT_CONN_REJECTED: 'the peer has rejected the request',
  DAT_CONN_UNREACHABLE: 'the peer cannot be reached',
  DAT_CONN_TIMED_OUT: 'the peer has not answered the request',
  DAT_CONN_ACCEPT_FAILED: 'the peer that asked has gone before the connection was there',
  DAT_CONN_ENDED: 'the peer has ended the connection',
  DAT_CONN_BROKEN: 'the connection is broken',
  DAT_CONN_CLOSED: 'this side has closed it',
} as const;

export type ConnectionCode = keyof typeof CONNECTION_CODES;
/** Type of `FlowError.code`: a code of the table, or a return type of DAT. */
export type FlowCode = ConnectionCode | DatType;

export interface FlowErrorOptions {
  /** The call, as the consumer wrote it: `conn.send`. */
  readonly operation: string;
  /** The problem, with the value and the limit. */
  readonly message: string;
  /** Why a connection has ended, for programs. */
  readonly reason?: ConnectionCause | undefined;
  readonly flightRecord?: readonly string[];
  /** Private data of the peer's rejection. */
  readonly peerPrivateData?: Uint8Array | undefined;
  /** The offending value. */
  readonly value?: unknown;
  readonly cause?: unknown;
}

const NO_RECORD: readonly string[] = [];

/**
 * An error of connections, listeners, datagrams and their parts. Test `code` (and `reason`), never
 * the text. Copies of this package recognize each other's errors by `FlowError.isFlowError`.
 */
export class FlowError extends Error {
  override readonly name = 'FlowError';
  /** `DAT_CONN_REFUSED`, `DAT_TIMEOUT_EXPIRED` and so on. */
  readonly code: FlowCode;
  readonly operation: string;
  /**
   * Always set for DAT_CONN_BROKEN, and for DAT_CONN_ENDED by a peer that found no receive here.
   */
  readonly reason: ConnectionCause | undefined;
  /** Last transitions of endpoint and queue pair, and messages of the CM; empty without any. */
  readonly flightRecord: readonly string[];
  /** For DAT_CONN_REJECTED: 148 bytes, the peer's private data padded with zeros. */
  readonly peerPrivateData: Uint8Array | undefined;
  readonly value: unknown;

  constructor(code: FlowCode, options: FlowErrorOptions) {
    const { operation, message, cause } = options;
    const text = `${oneLine(operation)}: ${oneLine(message)}`;
    const ending = ` [${code}]`;
    // The text of a DatError that is the cause ends with its code.
    super(
      text.endsWith(ending) ? text : text + ending,
      cause === undefined ? undefined : { cause },
    );
    this.code = code;
    this.operation = operation;
    this.reason = options.reason;
    this.flightRecord = options.flightRecord ?? NO_RECORD;
    this.peerPrivateData = options.peerPrivateData;
    this.value = options.value;
    Object.defineProperty(this, BRAND, { value: true });
  }

  /** For logs: the error's fields, without its stack and cause; the value as messages show it. */
  toJSON(): Readonly<Record<string, unknown>> {
    const { name, code, operation, message, reason, flightRecord, value } = this;
    return { name, code, operation, message, reason, flightRecord, value: show(value) };
  }

  /** True for a FlowError of any copy of this package. */
  static isFlowError(this: void, value: unknown): value is FlowError {
    return typeof value === 'object' && value !== null && BRAND in value;
  }
}

/** The text of an error without its call and its code: for the message of another one. */
export function explanationOf({ message, operation, code }: FlowError): string {
  return message.slice(`${oneLine(operation)}: `.length, -` [${code}]`.length);
}

/** The error for an invalid option or argument. */
export function refusalOf(operation: string): Refuse {
  return (name, value, expected) =>
    new FlowError('DAT_INVALID_PARAMETER', {
      operation,
      message: mustBe(name, value, expected),
      value,
    });
}

/** The error for a call that the object's state does not allow. */
export function invalidState(operation: string, message: string, value?: unknown): FlowError {
  return new FlowError('DAT_INVALID_STATE', { operation, message, value });
}

/**
 * Converts the error of a call. A FlowError passes through. A DatError becomes the cause of a
 * FlowError with its code and text.
 */
export function toFlowError(operation: string, error: unknown): FlowError {
  if (FlowError.isFlowError(error)) return error;
  const code = DatError.isDatError(error) ? error.code : 'DAT_INTERNAL_ERROR';
  const message = error instanceof Error ? error.message : String(error);
  return new FlowError(code, { operation, message, cause: error });
}

/** Runs calls of DAT, and throws their errors as FlowErrors. */
export function flowCall<T>(operation: string, call: () => T): T {
  try {
    return call();
  } catch (error) {
    throw toFlowError(operation, error);
  }
}

/** A rejected promise for the error that a call threw. */
export function rejection(operation: string, error: unknown): Promise<never> {
  return Promise.reject(toFlowError(operation, error));
}
