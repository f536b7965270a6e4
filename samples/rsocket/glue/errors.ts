/** How a connection comes to nothing, or ends, in the codes of Node: as tables. */
import { type ConnectionCause, type ConnectionEvent, DatError, DatEventNumber, nameOf } from 'dapl';
import { StreamError, type StreamErrorCode, type StreamErrorOptions } from '../../socket/index.js';
import { RsocketProtocolError } from '../wire/index.js';

/** By connection event; ESTABLISHED is none. */
const EVENT_CODES: Readonly<Record<number, StreamErrorCode>> = {
  [DatEventNumber.PEER_REJECTED]: 'ECONNREFUSED',
  [DatEventNumber.NON_PEER_REJECTED]: 'ECONNREFUSED',
  [DatEventNumber.ACCEPT_COMPLETION_ERROR]: 'ECONNABORTED',
  [DatEventNumber.DISCONNECTED]: 'ECONNRESET',
  [DatEventNumber.BROKEN]: 'ECONNRESET',
  [DatEventNumber.TIMED_OUT]: 'ETIMEDOUT',
  [DatEventNumber.UNREACHABLE]: 'EHOSTUNREACH',
};

/** Causes of BROKEN that are other than ECONNRESET. */
const CAUSE_CODES: Partial<Record<ConnectionCause, StreamErrorCode>> = {
  LOCAL_LENGTH: 'EPROTO',
  LOCAL_ACCESS: 'EPROTO',
  REMOTE_ACCESS: 'EPROTO',
  REMOTE_REQUEST: 'EPROTO',
  PEER_PROTOCOL: 'EPROTO',
  NO_RECEIVE_POSTED: 'EPROTO',
  LOCAL_PROTECTION: 'EIO',
  LOCAL_REQUEST: 'EIO',
  COMPLETIONS_LOST: 'EIO',
  DEVICE: 'EIO',
};

/** Codes of DAT that calls throw; others are EIO. */
const DAT_CODES: Readonly<Record<string, StreamErrorCode>> = {
  DAT_CONN_QUAL_IN_USE: 'EADDRINUSE',
  DAT_INVALID_ADDRESS: 'EADDRNOTAVAIL',
  DAT_INSUFFICIENT_RESOURCES: 'ENOMEM',
  DAT_PRIVILEGES_VIOLATION: 'EACCES',
};

type Where = Pick<StreamErrorOptions, 'syscall' | 'address' | 'port'>;

/** @param event undefined when the adapter has been closed */
export function errorOfEnd(event: ConnectionEvent | undefined, where: Where): StreamError {
  if (event === undefined) {
    return new StreamError('ECONNABORTED', { ...where, detail: 'its adapter has been closed' });
  }
  const code =
    (event.cause && CAUSE_CODES[event.cause]) ?? EVENT_CODES[event.number] ?? 'ECONNRESET';
  const { number, reason, cause, flightRecord = [] } = event;
  const what = { event: nameOf(DatEventNumber, number), reason, cause, flightRecord };
  return new StreamError(code, { ...where, detail: reason || undefined, cause: what });
}

/** What a call has thrown. */
export function errorOf(error: unknown, where: Where): StreamError {
  if (error instanceof StreamError) return error;
  const detail = error instanceof Error ? error.message : String(error);
  return new StreamError(codeOf(error), { ...where, detail, cause: error });
}

function codeOf(error: unknown): StreamErrorCode {
  if (error instanceof RsocketProtocolError) {
    return error.field === 'version' ? 'EPROTONOSUPPORT' : 'EPROTO';
  }
  return (DatError.isDatError(error) ? DAT_CODES[error.code] : undefined) ?? 'EIO';
}
