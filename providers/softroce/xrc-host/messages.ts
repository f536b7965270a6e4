/**
 * Messages between an opener of a domain and its host process. A message is one JSON object, of at
 * most 4,096 bytes. An opener asks, and waits for the answer that has its number; the host sends
 * events and completions unasked. The tables list the fields of each message.
 */
import {
  type CmAcceptOptions,
  type CmEvent,
  type Gid,
  GSI_QKEY,
  GSI_QPN,
  type HandedRequest,
  SpiError,
  type SpiErrorCode,
  type XrcOpenMode,
  type XrcTargetOwner,
} from '../../../core/spi/index.js';

export const MAX_MESSAGE_BYTES = 4096;
const GID_BYTES = 16;

/** A request of an opener. */
export type Request =
  | { readonly op: 'open'; readonly mode: XrcOpenMode }
  /** With the descriptor of the memory that it is in, of that length. */
  | {
      readonly op: 'addRegion';
      /** Number of the opener's protection zone: queues reach the regions of their own. */
      readonly zone: number;
      readonly key: number;
      readonly access: number;
      readonly iova: bigint;
      readonly memoryBytes: number;
      readonly offset: number;
      readonly lengthBytes: number;
    }
  | { readonly op: 'removeRegion'; readonly key: number }
  /** With the descriptor of the memory that has its rings (rings.ts). */
  | {
      readonly op: 'addQueue';
      readonly zone: number;
      readonly srqn: number;
      readonly maxWr: number;
      readonly maxSge: number;
    }
  | { readonly op: 'removeQueue'; readonly srqn: number }
  | { readonly op: 'failQueue'; readonly srqn: number }
  | { readonly op: 'limit'; readonly srqn: number; readonly limit: number }
  | { readonly op: 'createTarget'; readonly owner: XrcTargetOwner }
  /** Accepts a connection request with a target: what its connection does is told to the opener. */
  | ({
      readonly op: 'accept';
      readonly qpn: number;
    } & HandedReq &
      HandedAnswer)
  /** Its sender has repeated it. */
  | ({ readonly op: 'repeat' } & HandedReq)
  /** One hold more of this opener, or one less: the last one of all openers ends the target. */
  | { readonly op: 'hold'; readonly qpn: number }
  | { readonly op: 'release'; readonly qpn: number }
  | { readonly op: 'modify'; readonly qpn: number; readonly attributes: object }
  | { readonly op: 'query'; readonly qpn: number };

export type Op = Request['op'];

/** A request of the CM, and where it came from. */
export interface HandedReq {
  readonly mad: Uint8Array;
  readonly gid: Gid;
  readonly localGidIndex: number;
  /** 0 where it is not known. */
  readonly udpPort: number;
}

/** Options of accepting it. */
export type HandedAnswer = Omit<CmAcceptOptions, 'qp' | 'onEvent'>;

export function handedAnswerOf(options: CmAcceptOptions): HandedAnswer {
  return {
    privateData: options.privateData,
    responderResources: options.responderResources,
    initiatorDepth: options.initiatorDepth,
    retryCount: options.retryCount,
    rnrRetryCount: options.rnrRetryCount,
    minRnrTimer: options.minRnrTimer,
    accessFlags: options.accessFlags,
  };
}

export function handedReqOf({ data: mad, source }: HandedRequest): HandedReq {
  const { gid, localGidIndex, udpPort = 0 } = source;
  return { mad, gid, localGidIndex, udpPort };
}

export function handedRequestOf({ mad, gid, localGidIndex, udpPort }: HandedReq): HandedRequest {
  const source = { gid, localGidIndex, qpn: GSI_QPN, qkey: GSI_QKEY };
  return { data: mad, source: udpPort === 0 ? source : { ...source, udpPort } };
}

/** A message that has no answer. */
export type Note =
  /** Rings have something new: receives at the host, completions at the opener. */
  | { readonly note: 'look' }
  | { readonly note: 'targetEvent'; readonly qpn: number; readonly event: number }
  | { readonly note: 'connectionEvent'; readonly qpn: number; readonly event: CmEvent }
  | { readonly note: 'queueEvent'; readonly srqn: number; readonly event: number };

export interface Answer {
  readonly answer: number;
  readonly value?: unknown;
  readonly code?: SpiErrorCode;
  readonly message?: string;
}

type Kind = 'number' | 'u24' | 'u32' | 'bigint' | 'mode' | 'owner' | 'bytes' | 'gid' | 'object';
type Fields = Readonly<Record<string, Kind>>;

const HANDED: Fields = { mad: 'bytes', gid: 'gid', localGidIndex: 'u32', udpPort: 'u24' };

const OPS: Readonly<Record<Op, Fields>> = {
  open: { mode: 'mode' },
  addRegion: {
    zone: 'u32',
    key: 'u32',
    access: 'u32',
    iova: 'bigint',
    memoryBytes: 'number',
    offset: 'number',
    lengthBytes: 'number',
  },
  removeRegion: { key: 'u32' },
  addQueue: { zone: 'u32', srqn: 'u24', maxWr: 'u24', maxSge: 'u24' },
  removeQueue: { srqn: 'u24' },
  failQueue: { srqn: 'u24' },
  limit: { srqn: 'u24', limit: 'u32' },
  createTarget: { owner: 'owner' },
  accept: {
    qpn: 'u24',
    ...HANDED,
    privateData: 'bytes',
    responderResources: 'u32',
    initiatorDepth: 'u32',
    retryCount: 'u32',
    rnrRetryCount: 'u32',
    minRnrTimer: 'u32',
    accessFlags: 'u32',
  },
  repeat: HANDED,
  hold: { qpn: 'u24' },
  release: { qpn: 'u24' },
  modify: { qpn: 'u24', attributes: 'object' },
  query: { qpn: 'u24' },
};

const NOTES: Readonly<Record<Note['note'], Fields>> = {
  look: {},
  targetEvent: { qpn: 'u24', event: 'u32' },
  connectionEvent: { qpn: 'u24', event: 'object' },
  queueEvent: { srqn: 'u24', event: 'u32' },
};

const isWhole = (value: unknown, most: number): boolean =>
  Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= most;

const KINDS: Readonly<Record<Kind, (value: unknown) => boolean>> = {
  number: (value) => isWhole(value, Number.MAX_SAFE_INTEGER),
  u24: (value) => isWhole(value, 0xffffff),
  u32: (value) => isWhole(value, 0xffffffff),
  bigint: (value) => typeof value === 'bigint' && value >= 0n && value < 1n << 64n,
  mode: (value) => value === 'create' || value === 'exclusive' || value === 'existing',
  owner: (value) => value === 'consumer' || value === 'domain',
  bytes: (value) => value instanceof Uint8Array,
  gid: (value) => value instanceof Uint8Array && value.length === GID_BYTES,
  object: (value) => typeof value === 'object' && value !== null,
};

export type Message = (Request & { readonly id: number }) | Note | Answer;

/** @throws SpiError('EINVAL') it does not fit a message */
export function encode(message: Message): Uint8Array {
  const bytes = new TextEncoder().encode(JSON.stringify(message, replace));
  if (bytes.length > MAX_MESSAGE_BYTES) {
    throw new SpiError('EINVAL', `${bytes.length} bytes; a message has ${MAX_MESSAGE_BYTES}`);
  }
  return bytes;
}

/** @throws SpiError('EINVAL') that says what is wrong with it */
export function decode(bytes: Uint8Array): Message {
  let found: unknown;
  try {
    found = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes), revive);
  } catch (cause) {
    throw new SpiError('EINVAL', 'a message that is no JSON', { cause });
  }
  if (!KINDS.object(found)) throw new SpiError('EINVAL', 'a message that is no object');
  const message = found as Readonly<Record<string, unknown>>;
  if ('op' in message) {
    check(message, OPS, message['op'], 'id');
  } else if ('note' in message) {
    check(message, NOTES, message['note']);
  } else if (!KINDS.u32(message['answer'])) {
    throw new SpiError('EINVAL', 'a message of no kind');
  }
  return message as unknown as Message;
}

function check(
  message: Readonly<Record<string, unknown>>,
  table: Readonly<Record<string, Fields>>,
  name: unknown,
  number?: string,
): void {
  if (typeof name !== 'string' || !Object.hasOwn(table, name)) {
    throw new SpiError('EINVAL', 'a message of no kind');
  }
  const fields = { ...table[name], ...(number !== undefined && { [number]: 'u32' as const }) };
  for (const [field, kind] of Object.entries(fields)) {
    if (KINDS[kind](message[field])) continue;
    throw new SpiError('EINVAL', `message ${name}: ${field} is not of kind ${kind}`);
  }
}

/**
 * JSON has neither bytes nor numbers of 64 bits. A field is looked at as it is: what it says of
 * itself by `toJSON`, as a Buffer does, has been asked before this is called.
 */
function replace(this: Readonly<Record<string, unknown>>, key: string): unknown {
  const value = this[key];
  if (typeof value === 'bigint') return { $bigint: value.toString(16) };
  if (value instanceof Uint8Array) return { $bytes: Buffer.from(value).toString('hex') };
  return value;
}

function revive(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const { $bigint, $bytes } = value as { $bigint?: unknown; $bytes?: unknown };
  if (typeof $bigint === 'string' && /^[\da-f]{1,16}$/.test($bigint)) return BigInt(`0x${$bigint}`);
  if (typeof $bytes === 'string') return new Uint8Array(Buffer.from($bytes, 'hex'));
  return value;
}
