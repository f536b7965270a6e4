/** Parameters of the calls of `ia.mad`. Each check throws a DatError that names value and limit. */
import { DatError } from '../../errors/index.js';
import { checkFields } from '../../errors/guards.js';
import {
  ANYTHING,
  BYTES,
  POSITIVE,
  SIGNAL,
  integer,
  kindOf,
  optional,
} from '../../spi/checks/index.js';
import { type Gid, GSI_QPN, MadMethod } from '../../spi/index.js';
import { checkAddressed } from '../common/ip-address.js';
import { type MadFormat, maxPlainData } from './message.js';

/** Options of `agent.send` and `agent.request`. */
export interface MadSendOptions {
  /** IP address of the peer, as text. */
  readonly address: string;
  /** Queue pair of the peer: 1 (default) unless it was redirected. */
  readonly qpn?: number;
  /** A method without response bit, 1 to 127. Default: Get for requests, Send for others. */
  readonly method?: number;
  /** 16 bits. */
  readonly attributeId: number;
  /** 32 bits; default 0. */
  readonly attributeModifier?: number;
  /** Bytes after the headers of the class: at most 232, 220 or 216 without RMPP. */
  readonly data?: Uint8Array;
  /** With RMPP, and for requests: number of retransmissions. Default 3. */
  readonly retries?: number;
}

export interface MadRequestOptions extends MadSendOptions {
  /** Milliseconds to wait for the response, after each transmission. Default 1000. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/** Options of `request.respond`. */
export interface MadRespondOptions {
  /** MAD status, 16 bits; default 0. */
  readonly status?: number;
  /** Default: the request's. */
  readonly attributeModifier?: number;
  readonly data?: Uint8Array;
  /** With RMPP: number of retransmissions. Default 3. */
  readonly retries?: number;
}

export interface CheckedSend {
  readonly gid: Gid;
  readonly qpn: number;
  readonly method: number;
  readonly attributeId: number;
  readonly attributeModifier: number;
  readonly data: Uint8Array;
  readonly retries: number;
}

const DEFAULT_RETRIES = 3;
const DEFAULT_TIMEOUT_MS = 1000;
const MAX_TIMEOUT_MS = 3_600_000;
const MAX_RMPP_DATA = 1 << 25;

const MODIFIER = optional(integer(0, 0xffffffff));
const RETRIES = optional(integer(0, 255));
const SEND_OPTIONS = {
  address: ANYTHING,
  qpn: optional(integer(1, 0xffffff)),
  method: optional(integer(1, 0x7f)),
  attributeId: integer(0, 0xffff),
  attributeModifier: MODIFIER,
  retries: RETRIES,
  data: optional(BYTES),
};
const REQUEST_OPTIONS = {
  ...SEND_OPTIONS,
  timeoutMs: optional(
    kindOf(
      `a number of milliseconds above 0, at most ${MAX_TIMEOUT_MS}`,
      (value) => POSITIVE.accepts(value) && value <= MAX_TIMEOUT_MS,
    ),
  ),
  signal: optional(SIGNAL),
};
const RESPOND_OPTIONS = {
  status: optional(integer(0, 0xffff)),
  attributeModifier: MODIFIER,
  retries: RETRIES,
  data: optional(BYTES),
};

export function checkMadSend(
  operation: string,
  options: MadSendOptions,
  format: MadFormat,
): CheckedSend {
  const gid = checkAddressed(operation, options, SEND_OPTIONS);
  return completed(operation, gid, options, format, MadMethod.SEND);
}

export function checkMadRequest(
  operation: string,
  options: MadRequestOptions,
  format: MadFormat,
): CheckedSend & { readonly timeoutMs: number; readonly signal: AbortSignal | undefined } {
  const gid = checkAddressed(operation, options, REQUEST_OPTIONS);
  const checked = completed(operation, gid, options, format, MadMethod.GET);
  const { timeoutMs = DEFAULT_TIMEOUT_MS, signal } = options;
  return { ...checked, timeoutMs, signal };
}

export function checkMadRespond(
  operation: string,
  options: MadRespondOptions,
  format: MadFormat,
): Required<Pick<MadRespondOptions, 'status' | 'data' | 'retries'>> & MadRespondOptions {
  checkFields(operation, options, RESPOND_OPTIONS);
  const { status = 0, retries = DEFAULT_RETRIES, data } = options;
  return { ...options, status, retries, data: fitting(operation, data, format) };
}

function completed(
  operation: string,
  gid: Gid,
  options: MadSendOptions,
  format: MadFormat,
  defaultMethod: number,
): CheckedSend {
  const { qpn = GSI_QPN, method = defaultMethod, attributeId, attributeModifier = 0 } = options;
  const { retries = DEFAULT_RETRIES } = options;
  const data = fitting(operation, options.data, format);
  return { gid, qpn, method, attributeId, attributeModifier, data, retries };
}

function fitting(operation: string, data: Uint8Array | undefined, format: MadFormat): Uint8Array {
  if (data === undefined) return new Uint8Array(0);
  const most = format.rmpp ? MAX_RMPP_DATA : maxPlainData(format);
  if (data.length <= most) return data;
  throw new DatError('DAT_LENGTH_ERROR', {
    operation,
    message: `data has ${data.length} bytes; at most ${most} fit`,
    value: data.length,
    hint: format.rmpp ? undefined : 'register the agent with rmpp: true',
  });
}
