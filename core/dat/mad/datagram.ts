/** Requests and responses as `ia.mad` hands them over, and what becomes of those that fail. */
import { DatError, type DatType, toDatError } from '../../errors/index.js';
import { type MadSendResult, nameOf, WcStatus } from '../../spi/index.js';
import type { MadRespondOptions } from './checks.js';

/** A request that has arrived, or the response to one. */
export interface ManagementDatagram {
  /** IP address of the sender, as text. */
  readonly address: string;
  readonly method: number;
  /** MAD status; 0 is OK. */
  readonly status: number;
  readonly attributeId: number;
  readonly attributeModifier: number;
  /**
   * What follows the headers of the class, a copy: as long as it was sent with RMPP, else padded
   * with zeros to what a MAD holds.
   */
  readonly data: Uint8Array;
}

/** A request to this agent. */
export interface ManagementRequest extends ManagementDatagram {
  /**
   * Answers it, once. Resolves when the response has been sent; with RMPP, when it has arrived.
   * That it does not arrive may be left unhandled.
   * @throws DatError (rejects) DAT_INVALID_STATE (answered already), DAT_INVALID_PARAMETER,
   * DAT_LENGTH_ERROR, and as `agent.send`
   */
  respond(options?: MadRespondOptions): Promise<void>;
}

/** @internal */
export function answeredTwice(): DatError {
  return new DatError('DAT_INVALID_STATE', {
    operation: 'request.respond',
    message: 'the request has been answered',
  });
}

const FAILURES: Readonly<Record<number, DatType>> = {
  [WcStatus.RESP_TIMEOUT_ERR]: 'DAT_TIMEOUT_EXPIRED',
  [WcStatus.WR_FLUSH_ERR]: 'DAT_ABORT',
};

/** @internal the error of a send that was not a success */
export function failureOf(operation: string, result: MadSendResult): DatError {
  const { status, rmppStatus, error } = result;
  if (error) return toDatError(error, { operation });
  const name = nameOf(WcStatus, status);
  const why =
    rmppStatus === undefined ? name : `the transfer was ended with RMPP status ${rmppStatus}`;
  const value = rmppStatus ?? name;
  return new DatError(FAILURES[status] ?? 'DAT_INTERNAL_ERROR', { operation, message: why, value });
}
