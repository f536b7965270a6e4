/** What goes wrong between an initiator and a target, by code. */
import { type Sense, WireError } from '../../wire/index.js';

/** What a consumer decides by. */
export type IscsiCode =
  /** The transport could not be made, or was lost. */
  | 'ISCSI_CONNECTION'
  /** The target has refused the login; `status` says why. */
  | 'ISCSI_LOGIN_REFUSED'
  /** This side has refused it: a wrong proof, or a value that cannot be agreed on. */
  | 'ISCSI_LOGIN_FAILED'
  /** The target has sent what it must not. */
  | 'ISCSI_PROTOCOL'
  /** The target has not answered in time. */
  | 'ISCSI_TIMED_OUT'
  /** The target has rejected a PDU; `status` is the reason. */
  | 'ISCSI_REJECTED'
  /** The target has asked for the end of the session, or has announced it. */
  | 'ISCSI_LOGOUT_ASKED'
  /** This side has ended the session. */
  | 'ISCSI_CLOSED'
  /** The caller's signal has fired: the command may have been done. */
  | 'ISCSI_ABORTED'
  /** The connection was lost before the answer, and the command must not be sent twice. */
  | 'ISCSI_OUTCOME_UNKNOWN'
  /** The command has been answered with another status than GOOD; `status` and `sense` say more. */
  | 'SCSI_STATUS'
  /** A task management function was not done; `status` is its response. */
  | 'ISCSI_TASK_MANAGEMENT'
  /** A mistake of the caller: value and limit are in the text. */
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

/** What the target has sent that it must not, with the PDU's place in its text. */
export function protocolError(what: string): IscsiError {
  return new IscsiError('ISCSI_PROTOCOL', `the target breaks the protocol: ${what}`);
}

/** An error of a codec as one of the session; others are mistakes of this program. */
export function asIscsiError(error: unknown): IscsiError {
  if (error instanceof IscsiError) return error;
  if (!(error instanceof WireError)) throw error;
  const message = `the target breaks the protocol: ${error.message}`;
  return new IscsiError('ISCSI_PROTOCOL', message, { cause: error });
}
