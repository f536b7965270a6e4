/** Ends of a connection, or of an attempt: the error for each event, as a table. */
import type { Ep } from '../dat/endpoint/ep.js';
import { type ConnectionEvent, DatEventNumber } from '../evd/index.js';
import {
  CONNECTION_CODES,
  type ConnectionCode,
  FlowError,
  type FlowErrorOptions,
} from './flow-error.js';
import type { EndError } from './wait.js';

/** By connection event; ESTABLISHED is no end. */
const CODES: Readonly<Record<number, ConnectionCode>> = {
  [DatEventNumber.PEER_REJECTED]: 'DAT_CONN_REJECTED',
  [DatEventNumber.NON_PEER_REJECTED]: 'DAT_CONN_REFUSED',
  [DatEventNumber.ACCEPT_COMPLETION_ERROR]: 'DAT_CONN_ACCEPT_FAILED',
  [DatEventNumber.DISCONNECTED]: 'DAT_CONN_ENDED',
  [DatEventNumber.BROKEN]: 'DAT_CONN_BROKEN',
  [DatEventNumber.TIMED_OUT]: 'DAT_CONN_TIMED_OUT',
  [DatEventNumber.UNREACHABLE]: 'DAT_CONN_UNREACHABLE',
};

/** The end of a connection. */
export interface End {
  readonly code: ConnectionCode;
  readonly about: Omit<FlowErrorOptions, 'operation'>;
  /** A side has closed it: `conn.closed` resolves, and an iteration simply ends. */
  readonly isOrderly: boolean;
}

/**
 * The end that an event reports.
 * @param more what is known of the lengths involved, where they have ended it
 */
export function endOf(event: ConnectionEvent, ep: Ep, more: string): End {
  const code = CODES[event.number] ?? 'DAT_CONN_BROKEN';
  const { cause: reason, flightRecord = ep.flightRecord() } = event;
  const why = event.reason === undefined || event.reason === '' ? '' : `: ${event.reason}`;
  const message = `${CONNECTION_CODES[code]}${why}${more}`;
  const peerPrivateData = code === 'DAT_CONN_REJECTED' ? event.privateData : undefined;
  const isOrderly = code === 'DAT_CONN_ENDED' && reason === undefined;
  return { code, about: { message, reason, flightRecord, peerPrivateData }, isOrderly };
}

/** This side has closed it. @param how in words, where there is more to say */
export function closedHere(ep: Ep, how: string = CONNECTION_CODES.DAT_CONN_CLOSED): End {
  const about = { message: how, flightRecord: ep.flightRecord() };
  return { code: 'DAT_CONN_CLOSED', about, isOrderly: true };
}

/**
 * The error of each call when the connection ends: an error of its own, with the connection's as
 * its cause. Only the call's error has the flight record: a log that shows both has it once.
 */
export function errorOfEnd({ code, about }: End): EndError {
  const { message, reason } = about;
  let cause: FlowError | undefined;
  return (operation) => {
    // A connection that nobody waits for ends without an error, which would cost a stack trace.
    cause ??= new FlowError(code, { operation: 'conn', message, reason });
    return new FlowError(code, { operation, ...about, cause });
  };
}
