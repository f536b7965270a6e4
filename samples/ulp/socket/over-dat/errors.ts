/** Tables that map failures and ends of a DAT connection to the codes of Node. */
import { type ConnectionCause, type ConnectionEvent, DatError, DatEventNumber, nameOf } from 'dapl';
import { StreamError, type StreamErrorCode, type StreamErrorOptions } from '../stream-error.js';

/** Codes by connection event; ESTABLISHED is none. */
const EVENT_CODES: Readonly<Record<number, StreamErrorCode>> = {
  [DatEventNumber.PEER_REJECTED]: 'ECONNREFUSED',
  [DatEventNumber.NON_PEER_REJECTED]: 'ECONNREFUSED',
  [DatEventNumber.ACCEPT_COMPLETION_ERROR]: 'ECONNABORTED',
  [DatEventNumber.DISCONNECTED]: 'ECONNRESET',
  [DatEventNumber.BROKEN]: 'ECONNRESET',
  [DatEventNumber.TIMED_OUT]: 'ETIMEDOUT',
  [DatEventNumber.UNREACHABLE]: 'EHOSTUNREACH',
};

type CauseCodes = Partial<Record<ConnectionCause, StreamErrorCode>>;

/** Codes of BROKEN by cause; others are ECONNRESET. */
const CAUSE_CODES: CauseCodes = {
  LOCAL_LENGTH: 'EPROTO',
  LOCAL_ACCESS: 'EPROTO',
  REMOTE_ACCESS: 'EPROTO',
  REMOTE_REQUEST: 'EPROTO',
  PEER_PROTOCOL: 'EPROTO',
  NO_RECEIVE_POSTED: 'EPROTO',
  LOCAL_PROTECTION: 'EIO',
  LOCAL_REQUEST: 'EIO',
  CONNECTION_LOST: 'EHOSTUNREACH',
  COMPLETIONS_LOST: 'EIO',
  DEVICE: 'EIO',
};

/** Codes for DAT errors that calls throw; others are EIO. */
const DAT_CODES: Readonly<Record<string, StreamErrorCode>> = {
  DAT_CONN_QUAL_IN_USE: 'EADDRINUSE',
  DAT_INVALID_ADDRESS: 'EADDRNOTAVAIL',
  DAT_INSUFFICIENT_RESOURCES: 'ENOMEM',
  DAT_PRIVILEGES_VIOLATION: 'EACCES',
};

type Where = Pick<StreamErrorOptions, 'syscall' | 'address' | 'port'>;

export interface StreamErrors {
  /** @param event undefined if the adapter was closed */
  readonly errorOfEnd: (event: ConnectionEvent | undefined, where: Where) => StreamError;
  /** Converts an error that a call has thrown. */
  readonly errorOf: (error: unknown, where: Where) => StreamError;
}

/**
 * @param codeOf maps the protocol's own errors; undefined for others
 * @param causes of BROKEN that mean something else in this protocol
 */
export function streamErrors(
  codeOf: (error: unknown) => StreamErrorCode | undefined,
  causes: CauseCodes = {},
): StreamErrors {
  const causeCodes: CauseCodes = { ...CAUSE_CODES, ...causes };
  return {
    errorOfEnd(event, where) {
      if (event === undefined) {
        return new StreamError('ECONNABORTED', { ...where, detail: 'its adapter has been closed' });
      }
      const { number, reason, cause, flightRecord = [] } = event;
      const code = (cause && causeCodes[cause]) ?? EVENT_CODES[number] ?? 'ECONNRESET';
      const what = { event: nameOf(DatEventNumber, number), reason, cause, flightRecord };
      return new StreamError(code, { ...where, detail: reason || undefined, cause: what });
    },
    errorOf(error, where) {
      if (error instanceof StreamError) return error;
      const detail = error instanceof Error ? error.message : String(error);
      const ofDat = DatError.isDatError(error) ? DAT_CODES[error.code] : undefined;
      return new StreamError(codeOf(error) ?? ofDat ?? 'EIO', { ...where, detail, cause: error });
    },
  };
}
