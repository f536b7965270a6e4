/** Data to send, write and read, and the options of the calls. */
import { LmrSegment } from '../dat/memory/segment.js';
import { checkInteger, checkValue, integer, optional } from '../spi/checks/index.js';
import { refusalOf } from './flow-error.js';
import { checkWait, NO_OPTIONS, type WaitOptions } from './wait.js';

/** Data to send or write: bytes, which are copied, or memory of `conn.ep.pz`, which is not. */
export type Data = Uint8Array | LmrSegment;

export interface SendOptions extends WaitOptions {
  /** u32 that is sent along: `message.immediate` at the peer. */
  readonly immediate?: number | undefined;
}

export interface TransferOptions extends WaitOptions {
  /** Bytes from the beginning of the peer's memory on; default 0. */
  readonly offset?: number | undefined;
}

export interface WriteOptions extends TransferOptions {
  /** u32 for the peer, sent after the bytes as a message of 0 bytes. */
  readonly immediate?: number | undefined;
}

export const SEND_NAMES: readonly string[] = ['immediate'];
export const TRANSFER_NAMES: readonly string[] = ['offset'];
export const WRITE_NAMES: readonly string[] = [...SEND_NAMES, ...TRANSFER_NAMES];
const IMMEDIATE = optional(integer(0, 2 ** 32 - 1));

/**
 * @param names of the options that the call takes, besides `signal` and `timeoutMs`
 * @throws FlowError DAT_INVALID_PARAMETER; DAT_INTERRUPTED_CALL when the signal has fired before
 */
export function checkTransfer(
  operation: string,
  data: Data,
  options: SendOptions & TransferOptions,
  names: readonly string[],
): void {
  if (!(data instanceof LmrSegment || data instanceof Uint8Array)) {
    throw refusalOf(operation)('data', data, 'a Uint8Array, or an LmrSegment');
  }
  if (options === NO_OPTIONS) return;
  checkWait(operation, options, names);
  const refuse = refusalOf(operation);
  checkValue('immediate', options.immediate, IMMEDIATE, refuse);
  checkInteger('offset', options.offset ?? 0, 0, Number.MAX_SAFE_INTEGER, refuse);
}

/** Its bytes. */
export function sizeOf(data: Data): number {
  return data instanceof LmrSegment ? data.lengthBytes : data.length;
}
