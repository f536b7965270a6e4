/** Parameters of the calls of `ia.mad`. Each check throws a DatError that names value and limit. */
import { DatError } from '../../errors/index.js';
import { type Gid, GSI_QPN, MadMethod } from '../../spi/index.js';
import { checkIp } from '../common/ip-address.js';
import { checkInteger, checkOptions, invalid } from '../common/guards.js';
import { type MadFormat, maxPlainData } from './message.js';

/** What `agent.send` and `agent.request` take. */
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
  /** What follows the headers of the class: at most 232, 220 or 216 bytes without RMPP. */
  readonly data?: Uint8Array;
  /** With RMPP, and for requests: times to send again. Default 3. */
  readonly retries?: number;
}

export interface MadRequestOptions extends MadSendOptions {
  /** Milliseconds to wait for the response, after each time of sending. Default 1000. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/** What `request.respond` takes. */
export interface MadRespondOptions {
  /** MAD status, 16 bits; default 0. */
  readonly status?: number;
  /** Default: the request's. */
  readonly attributeModifier?: number;
  readonly data?: Uint8Array;
  /** With RMPP: times to send again. Default 3. */
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

const SEND_KEYS = [
  'address',
  'qpn',
  'method',
  'attributeId',
  'attributeModifier',
  'data',
  'retries',
];
const REQUEST_KEYS = [...SEND_KEYS, 'timeoutMs', 'signal'];
const DEFAULT_RETRIES = 3;
const DEFAULT_TIMEOUT_MS = 1000;
const MAX_TIMEOUT_MS = 3_600_000;
const MAX_RMPP_DATA = 1 << 25;

export function checkMadSend(
  operation: string,
  options: MadSendOptions,
  format: MadFormat,
): CheckedSend {
  checkOptions(operation, 1, options, SEND_KEYS);
  return checkFields(operation, options, format, MadMethod.SEND);
}

export function checkMadRequest(
  operation: string,
  options: MadRequestOptions,
  format: MadFormat,
): CheckedSend & { readonly timeoutMs: number; readonly signal: AbortSignal | undefined } {
  checkOptions(operation, 1, options, REQUEST_KEYS);
  const checked = checkFields(operation, options, format, MadMethod.GET);
  const { timeoutMs = DEFAULT_TIMEOUT_MS, signal } = options as MadRequestOptions;
  if (typeof timeoutMs !== 'number' || !(timeoutMs > 0 && timeoutMs <= MAX_TIMEOUT_MS)) {
    const expected = `milliseconds above 0, at most ${MAX_TIMEOUT_MS}`;
    throw invalid(operation, 1, 'timeoutMs', timeoutMs, expected);
  }
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw invalid(operation, 1, 'signal', signal, 'an AbortSignal');
  }
  return { ...checked, timeoutMs, signal };
}

export function checkMadRespond(
  operation: string,
  options: MadRespondOptions,
  format: MadFormat,
): Required<Pick<MadRespondOptions, 'status' | 'data' | 'retries'>> & MadRespondOptions {
  checkOptions(operation, 1, options, ['status', 'attributeModifier', 'data', 'retries']);
  const { status = 0, attributeModifier, retries = DEFAULT_RETRIES } = options as MadRespondOptions;
  checkInteger(operation, 1, 'status', status, 0, 0xffff);
  if (attributeModifier !== undefined) {
    checkInteger(operation, 1, 'attributeModifier', attributeModifier, 0, 0xffffffff);
  }
  checkRetries(operation, retries);
  return { ...options, status, retries, data: checkData(operation, options.data, format) };
}

function checkFields(
  operation: string,
  options: MadSendOptions,
  format: MadFormat,
  defaultMethod: number,
): CheckedSend {
  const { qpn = GSI_QPN, method = defaultMethod, attributeId, attributeModifier = 0 } = options;
  const { retries = DEFAULT_RETRIES } = options;
  const gid = checkIp(operation, 2, options.address);
  checkInteger(operation, 1, 'qpn', qpn, 1, 0xffffff);
  checkInteger(operation, 1, 'method', method, 1, 0x7f);
  checkInteger(operation, 1, 'attributeId', attributeId, 0, 0xffff);
  checkInteger(operation, 1, 'attributeModifier', attributeModifier, 0, 0xffffffff);
  checkRetries(operation, retries);
  const data = checkData(operation, options.data, format);
  return { gid, qpn, method, attributeId, attributeModifier, data, retries };
}

function checkRetries(operation: string, retries: unknown): void {
  checkInteger(operation, 1, 'retries', retries, 0, 255);
}

function checkData(operation: string, data: unknown, format: MadFormat): Uint8Array {
  if (data === undefined) return new Uint8Array(0);
  if (!(data instanceof Uint8Array)) {
    throw invalid(operation, 1, 'data', data, 'a Uint8Array');
  }
  const most = format.rmpp ? MAX_RMPP_DATA : maxPlainData(format);
  if (data.length <= most) return data;
  throw new DatError('DAT_LENGTH_ERROR', {
    operation,
    message: `data has ${data.length} bytes; at most ${most} fit`,
    value: data.length,
    ...(format.rmpp ? {} : { hint: 'register the agent with rmpp: true' }),
  });
}
