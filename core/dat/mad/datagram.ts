/** Requests and responses of `ia.mad`, and the errors of those that fail. */
import { DatError, type DatType, toDatError } from '../../errors/index.js';
import {
  type Gid,
  ipFromGid,
  type MadHeader,
  MadMethod,
  type MadSendResult,
  nameOf,
  WcStatus,
} from '../../spi/index.js';
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
   * Bytes after the headers of the class, a copy. With RMPP as long as sent, else padded with zeros
   * to the capacity of a MAD.
   */
  readonly data: Uint8Array;
}

/** A request to this agent. */
export interface ManagementRequest extends ManagementDatagram {
  /**
   * Answers it, once. Resolves when the response has been sent; with RMPP, when it has arrived.
   * A rejection for a response that does not arrive may be left unhandled.
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

/** @internal a sent MAD: its peer, and the limit of transmissions */
export interface SentDatagram {
  readonly header: Pick<MadHeader, 'managementClass' | 'method' | 'attributeId'>;
  readonly gid: Gid;
  /** Length of one wait for the response; 0 where none is expected. */
  readonly timeoutUs: number;
  readonly retries: number;
}

/** @internal the error of a send that was not a success */
export function failureOf(operation: string, sent: SentDatagram, result: MadSendResult): DatError {
  const { status, rmppStatus, error } = result;
  if (error) return toDatError(error, { operation });
  const name = nameOf(WcStatus, status);
  const message = `${subjectOf(sent)}: ${reasonOf(sent, result, name)}`;
  const value = rmppStatus ?? name;
  return new DatError(FAILURES[status] ?? 'DAT_INTERNAL_ERROR', { operation, message, value });
}

/** `GET of attribute 0x0020 (class 0x30) to 10.0.0.1`. */
function subjectOf({ header, gid }: SentDatagram): string {
  const { managementClass, method, attributeId } = header;
  const attribute = `attribute ${hex(attributeId, 4)} (class ${hex(managementClass, 2)})`;
  return `${methodName(method)} of ${attribute} to ${ipFromGid(gid)}`;
}

function reasonOf(sent: SentDatagram, result: MadSendResult, name: string): string {
  const { rmppStatus, status } = result;
  if (rmppStatus !== undefined) return `the transfer was ended with RMPP status ${rmppStatus}`;
  if (status !== WcStatus.RESP_TIMEOUT_ERR) return name;
  const { timeoutUs, retries } = sent;
  const times = retries === 0 ? 'once' : `${retries + 1} times`;
  if (timeoutUs === 0) return `not acknowledged, sent ${times}`;
  return `no response within ${timeoutUs / 1000} ms, sent ${times}`;
}

function methodName(method: number): string {
  const name = Object.entries(MadMethod).find(([, value]) => value === method)?.[0];
  return name === undefined ? `method ${hex(method, 2)}` : name;
}

function hex(value: number, digits: number): string {
  return `0x${value.toString(16).padStart(digits, '0')}`;
}
