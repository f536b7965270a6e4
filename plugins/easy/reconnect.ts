/** Connections to one peer, each made when the one before has ended. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Connection, FlowError } from 'dapl/flow';
import { checkOptions, kinds, leaveUnhandled } from 'dapl/spi';
import { connect } from './calls.js';
import { type ConnectOptions, LONGEST_TIMER_MS, refusalOf } from './options.js';

/** Options of `reconnect` beyond those of `connect`. */
export interface ReconnectOptions extends ConnectOptions {
  /** For each attempt to connect, in milliseconds; default 5000. */
  readonly timeoutMs?: number;
  /**
   * Milliseconds from one attempt to the next: `least` (default 50), doubled up to `most` (default
   * 2000). A connection that lasted longer than the last wait sets it back to `least`.
   */
  readonly waitMs?: { readonly least?: number; readonly most?: number };
  /** Hears what happens, in the order of time. */
  readonly onState?: (state: ReconnectState) => void;
  /** Ends it: a connection that is open is closed. */
  readonly signal?: AbortSignal;
}

/** A state of `reconnect`. */
export interface ReconnectState {
  /** `waiting` lasts from a failed attempt, or the end of a connection, to the next attempt. */
  readonly state: 'connecting' | 'connected' | 'waiting';
  /** Attempts to connect since the last connection: 0 when connected. */
  readonly attempt: number;
  /** Milliseconds to the next attempt, while it is waiting. */
  readonly waitMs?: number;
  /** Why the last attempt has failed, or the connection has ended. */
  readonly cause?: FlowError;
}

const { FUNCTION, integer, optional, record } = kinds;
const NAME = 'reconnect';
const TIMEOUT_MS = 5000;
const LEAST_WAIT_MS = 50;
const MOST_WAIT_MS = 2000;

/** Kinds of the options that only `reconnect` knows. */
export const RECONNECT = {
  waitMs: optional(
    record({
      least: optional(integer(1, LONGEST_TIMER_MS)),
      most: optional(integer(1, LONGEST_TIMER_MS)),
    }),
  ),
  onState: optional(FUNCTION),
};

/** Failures that pass when the peer is there again. */
const PASSING: readonly string[] = [
  'DAT_CONN_BROKEN',
  'DAT_CONN_ENDED',
  'DAT_CONN_REFUSED',
  'DAT_CONN_TIMED_OUT',
  'DAT_CONN_UNREACHABLE',
  'DAT_TIMEOUT_EXPIRED',
];

function passes({ code, peerPrivateData }: FlowError): boolean {
  // A listener that closes rejects what is waiting; one that says why means it.
  if (code === 'DAT_CONN_REJECTED') return peerPrivateData?.every((byte) => byte === 0) === true;
  return PASSING.includes(code);
}

/** @throws FlowError DAT_INVALID_PARAMETER */
export function checkWaits(operation: string, waitMs: ReconnectOptions['waitMs'] = {}): void {
  const { least = LEAST_WAIT_MS, most = MOST_WAIT_MS } = waitMs;
  if (least <= most) return;
  throw refusalOf(operation)('waitMs.least', least, `at most waitMs.most, ${most}`);
}

/**
 * Connects, and yields the connection; connects again when the loop comes back for the next one,
 * and so on until `signal` fires or the loop is left. A connection that the loop leaves open is
 * closed. Failed attempts are repeated with growing waits.
 * @throws FlowError DAT_INVALID_PARAMETER; errors of `connect` that no later attempt mends
 */
export async function* reconnect(
  options: ReconnectOptions,
): AsyncGenerator<Connection, void, undefined> {
  const { waitMs: waits = {}, onState = () => undefined, ...given } = options;
  const { signal } = options;
  checkOptions({ waitMs: waits, onState }, RECONNECT, refusalOf(NAME));
  checkWaits(NAME, waits);
  const { least = LEAST_WAIT_MS, most = MOST_WAIT_MS } = waits;
  const isOver = (): boolean => signal?.aborted === true;
  let waitMs = least;
  for (let attempt = 1; !isOver(); attempt++) {
    onState({ state: 'connecting', attempt });
    let cause: FlowError | undefined;
    try {
      const conn = await connect({ timeoutMs: TIMEOUT_MS, ...given });
      attempt = 0;
      const sinceMs = performance.now();
      onState({ state: 'connected', attempt });
      yield* lend(conn, signal);
      cause = await endOf(conn);
      if (performance.now() - sinceMs > waitMs) waitMs = least;
    } catch (error) {
      if (isOver()) return;
      cause = error as FlowError;
      if (!passes(cause)) throw cause;
    }
    if (isOver()) return;
    onState({ state: 'waiting', attempt, waitMs, ...(cause && { cause }) });
    await sleep(waitMs, undefined, signal && { signal }).catch(() => undefined);
    waitMs = Math.min(2 * waitMs, most);
  }
}

/** Yields it once, and closes it when the loop is done with it, or the signal fires. */
async function* lend(
  conn: Connection,
  signal: AbortSignal | undefined,
): AsyncGenerator<Connection, void, undefined> {
  const onAbort = (): void => leaveUnhandled(conn.close());
  signal?.addEventListener('abort', onAbort, { once: true });
  try {
    yield conn;
  } finally {
    signal?.removeEventListener('abort', onAbort);
    await conn.close();
  }
}

/** Why it broke; undefined if a side has closed it. */
function endOf({ closed }: Connection): Promise<FlowError | undefined> {
  return closed.then(
    () => undefined,
    (error: unknown) => error as FlowError,
  );
}
