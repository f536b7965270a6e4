/** Errors between an initiator and a target, by code. */
import { type Sense, WireError } from '../../wire/index.js';

/** Codes for consumers to decide by. */
export type IscsiCode =
  /** The transport could not be established, or was lost. */
  | 'ISCSI_CONNECTION'
  /** The target has refused the login; `status` says why. */
  | 'ISCSI_LOGIN_REFUSED'
  /** This side has refused the login: a wrong proof, or a value that it cannot accept. */
  | 'ISCSI_LOGIN_FAILED'
  /** The target has violated the protocol. */
  | 'ISCSI_PROTOCOL'
  /** The target has not answered in time. */
  | 'ISCSI_TIMED_OUT'
  /** The target has rejected a PDU; `status` is the reason. */
  | 'ISCSI_REJECTED'
  /** The target has requested the end of the session, or announced it. */
  | 'ISCSI_LOGOUT_ASKED'
  /** This side has ended the session. */
  | 'ISCSI_CLOSED'
  /** The caller's signal has fired; the command may have been executed. */
  | 'ISCSI_ABORTED'
  /** The connection was lost before the answer, and the command must not be sent twice. */
  | 'ISCSI_OUTCOME_UNKNOWN'
  /** The answer has a status other than GOOD; `status` and `sense` say more. */
  | 'SCSI_STATUS'
  /** A task management function failed; `status` is its response. */
  | 'ISCSI_TASK_MANAGEMENT'
  /** A mistake of the caller: the message names value and limit. */
  | 'ISCSI_INVALID_PARAMETER';

export interface IscsiErrorOptions {
  readonly cause?: unknown;
  /** Login status, SCSI status, reject reason or response. */
  readonly status?: number;
  readonly sense?: Sense;
}

export class IscsiError extends Error {
  override readonly name = 'IscsiError';
  readonly status: number | undefined;
  readonly sense: Sense | undefined;

  constructor(
    readonly code: IscsiCode,
    message: string,
    { cause, status, sense }: IscsiErrorOptions = {},
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.status = status;
    this.sense = sense;
  }
}

/** A violation by the target; `what` names the PDU, too. */
export function protocolError(what: string): IscsiError {
  return new IscsiError('ISCSI_PROTOCOL', `the target breaks the protocol: ${what}`);
}

/** Converts an error of a codec to one of the session; others are mistakes of this program. */
export function asIscsiError(error: unknown): IscsiError {
  if (error instanceof IscsiError) return error;
  if (!(error instanceof WireError)) throw error;
  const message = `the target breaks the protocol: ${error.message}`;
  return new IscsiError('ISCSI_PROTOCOL', message, { cause: error });
}
