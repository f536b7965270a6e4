/** Options of connections and listeners: kinds, limits, defaults. */
import type { Ia } from '../dat/ia/ia.js';
import { Pz } from '../dat/memory/pz.js';
import type { EpAttributeOptions } from '../dat/endpoint/attributes.js';
import {
  ANYTHING,
  BOOLEAN,
  BYTES,
  checkNames,
  checkValue,
  checkValues,
  FUNCTION,
  instanceOf,
  integer,
  type Kinds,
  kindOf,
  isInteger,
  OBJECT,
  oneOf,
  optional,
  record,
} from '../spi/checks/index.js';
import { CmPrivateData, type PollingMode } from '../spi/index.js';
import { FlowError, refusalOf } from './flow-error.js';
import { checkWait, WAIT_KINDS, type WaitOptions } from './wait.js';

/** Posted receives, and how their messages are handed over. */
export interface ReceiveOptions {
  /** Receives posted at a time, 1 to 65535: messages that may be queued here. Default 16. */
  readonly buffers?: number;
  /** The longest message that can be received, 1 to 2^30 bytes. Default 16384. */
  readonly bufferBytes?: number;
  /**
   * True: `message.bytes` is the receive buffer itself, and `message.release()` posts it again.
   * False (default): it is a copy.
   */
  readonly lend?: boolean;
}

/** Options for both sides of a connection. */
export interface ConnectionOptions {
  /** The zone of its endpoint and buffers; default one that all of the adapter share. */
  readonly pz?: Pz;
  readonly receives?: ReceiveOptions;
  /** Requests posted at a time, 1 to 65535; more are queued. Default 32. */
  readonly requests?: number;
  /**
   * The longest message to send, up to the device's limit; default `receives.bufferBytes`, as the
   * peer's is not known.
   */
  readonly maxMessageBytes?: number;
  /**
   * A silent peer is probed after so many milliseconds: 0 (never) or 10 to 86400000. Default 5000.
   */
  readonly keepAliveMs?: number;
  /** How to wait for completions, as in `ia.createEvd`. Default 'event'. */
  readonly polling?: Exclude<PollingMode, 'spin'>;
  /** Attributes of the endpoint beneath, in place of those derived from the other options. */
  readonly attributes?: EpAttributeOptions;
}

/** Options of `connect`. `signal` and `timeoutMs` only apply until the connection is made. */
export interface ConnectOptions extends ConnectionOptions, WaitOptions {
  /** IP address of the peer, as text. */
  readonly address: string;
  /** Port of rdma_cm's TCP port space, 1 to 65535. */
  readonly port: number;
  /** At most 56 bytes, for the listener to read. */
  readonly privateData?: Uint8Array;
}

/** Checked options, with defaults filled in. */
export interface ConnectionPlan {
  readonly pz: Pz | undefined;
  readonly buffers: number;
  readonly bufferBytes: number;
  readonly lend: boolean;
  readonly requests: number;
  readonly maxMessageBytes: number;
  readonly polling: Exclude<PollingMode, 'spin'>;
  readonly attributes: EpAttributeOptions;
}

/** The receives of a connection with these options. */
export function receivesOf({
  buffers,
  bufferBytes,
  lend,
}: ConnectionPlan): Required<ReceiveOptions> {
  return { buffers, bufferBytes, lend };
}

const LONGEST = 2 ** 30;
const QUEUE = integer(1, 65535);
/** A port. */
export const PORT = integer(1, 65535);
const RECEIVES: Kinds<ReceiveOptions> = {
  buffers: optional(QUEUE),
  bufferBytes: optional(integer(1, LONGEST)),
  lend: optional(BOOLEAN),
};
const CONNECTION: Kinds<ConnectionOptions> = {
  pz: optional(instanceOf(Pz, 'a Pz')),
  receives: optional(record(RECEIVES)),
  requests: optional(QUEUE),
  maxMessageBytes: optional(integer(1, LONGEST)),
  keepAliveMs: optional(
    kindOf<number>(
      '0 (off), or an integer from 10 to 86400000',
      (value) => value === 0 || isInteger(value, 10, 86_400_000),
    ),
  ),
  polling: optional(oneOf(['event', 'adaptive'])),
  attributes: optional(OBJECT),
};
const CONNECT: Kinds<ConnectOptions> = {
  ...CONNECTION,
  ...WAIT_KINDS,
  address: ANYTHING,
  port: PORT,
  privateData: optional(BYTES),
};
const DEFAULTS = { buffers: 16, bufferBytes: 16_384, requests: 32, keepAliveMs: 5000 } as const;

/**
 * The peer retries without limit for a receive: that is the backpressure. It retries after 1.28 ms
 * (IBTA table 45): often enough to resume soon after a late consumer.
 */
const FOR_EVER = 7;
const RNR_1_28_MS = 14;

/**
 * Extracts the options of a connection from those of a call.
 * @throws FlowError DAT_INVALID_PARAMETER
 */
export function planOf(operation: string, ia: Ia, options: ConnectionOptions): ConnectionPlan {
  const refuse = refusalOf(operation);
  checkValues(options, CONNECTION, refuse);
  const { pz, receives = {}, requests = DEFAULTS.requests, keepAliveMs, attributes } = options;
  const { buffers = DEFAULTS.buffers, bufferBytes = DEFAULTS.bufferBytes, lend = false } = receives;
  if (pz !== undefined && pz.ia !== ia) {
    throw refuse('pz', pz, 'a zone of the adapter that the connection is made with');
  }
  return {
    pz,
    buffers,
    bufferBytes,
    lend,
    requests,
    maxMessageBytes: Math.min(
      options.maxMessageBytes ?? bufferBytes,
      attributes?.maxMessageBytes ?? Infinity,
      ia.core.context.device.attributes.maxMessageBytes,
    ),
    polling: options.polling ?? 'adaptive',
    attributes: {
      keepAliveMs: keepAliveMs ?? DEFAULTS.keepAliveMs,
      maxRecvDtos: buffers,
      maxRequestDtos: requests,
      ...attributes,
      transport: {
        rnrRetryCount: FOR_EVER,
        minRnrTimer: RNR_1_28_MS,
        ...attributes?.transport,
      },
    },
  };
}

/** @throws FlowError DAT_INVALID_PARAMETER, DAT_INTERRUPTED_CALL */
export function checkConnect(operation: string, options: ConnectOptions): void {
  checkNames(options, Object.keys(CONNECT), refusalOf(operation));
  checkWait(operation, options, Object.keys(CONNECT));
  checkValues(options, CONNECT, refusalOf(operation));
  checkPrivateData(operation, options.privateData, CmPrivateData.REQ);
}

/** Options of a listener. */
export interface ListenOptions extends ConnectionOptions {
  /** Port of rdma_cm's TCP port space, 1 to 65535; by default, and for 0, a free one. */
  readonly port?: number;
  /** Connections being established, or not yet taken: 1 to 4096, default 128. */
  readonly backlog?: number;
  /**
   * Decides on each request. Its result, at most 196 bytes, is the private data of the answer. It
   * refuses by `request.refuse()`. An error that it throws also refuses, and is logged.
   */
  readonly answer?: ListenAnswer;
  /** Closes the listener when it fires. */
  readonly signal?: AbortSignal;
}

/** A peer's request for a connection. */
export interface ListenRequest {
  /** IP address, as text. */
  readonly address: string;
  /** Source port in rdma_cm's header; 0 if the request has none. */
  readonly port: number;
  /** 56 bytes: the peer's private data, padded with zeros. */
  readonly privateData: Uint8Array;
  /**
   * Rejects the request: the peer gets DAT_CONN_REJECTED.
   * @param privateData at most 148 bytes, for the peer to read
   */
  readonly refuse: (privateData?: Uint8Array) => undefined;
}

type Answer = Uint8Array | undefined | void;
export type ListenAnswer = (request: ListenRequest) => Answer | PromiseLike<Answer>;

const LISTEN: Kinds<ListenOptions> = {
  ...CONNECTION,
  port: optional(integer(0, 65535)),
  backlog: optional(integer(1, 4096)),
  answer: optional(FUNCTION),
  signal: WAIT_KINDS.signal,
};

/** @throws FlowError DAT_INVALID_PARAMETER */
export function checkListen(operation: string, options: ListenOptions): void {
  const refuse = refusalOf(operation);
  checkNames(options, Object.keys(LISTEN), refuse);
  checkValues(options, LISTEN, refuse);
}

/** @throws FlowError DAT_INVALID_PARAMETER, DAT_LENGTH_ERROR */
export function checkPrivateData(operation: string, value: unknown, mostBytes: number): void {
  if (value === undefined) return;
  checkValue('privateData', value, BYTES, refusalOf(operation));
  if (value.length <= mostBytes) return;
  throw new FlowError('DAT_LENGTH_ERROR', {
    operation,
    message: `privateData has ${value.length} bytes; at most ${mostBytes} fit`,
    value: value.length,
  });
}
