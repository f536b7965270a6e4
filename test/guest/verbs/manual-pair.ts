/** Two queue pairs that are connected without a connection manager. */
import { Access, QpType } from '../../../core/spi/index.js';
import type { Domain, ManualConnection, ManualEnd, Pair, QueuePairSizes } from './end.js';

export type Ends = {
  readonly [Role in 'requester' | 'responder']: {
    readonly end: ManualEnd;
    readonly domain: Domain;
  };
};

/** What is not said here is as in `DEFAULTS`. */
export interface PairOptions extends Partial<ManualConnection> {
  readonly type?: QpType;
  readonly mtuBytes: number;
  /** What the requester may do through the responder's queue pair. */
  readonly access?: number;
}

export interface Connected {
  readonly requester: Pair;
  readonly responder: Pair;
}

const { LOCAL_WRITE, REMOTE_ATOMIC, REMOTE_READ, REMOTE_WRITE } = Access;
export const EVERYTHING = LOCAL_WRITE | REMOTE_READ | REMOTE_WRITE | REMOTE_ATOMIC;
/** Near the end of the numbers, so that they wrap. */
export const REQUEST_PSN = 0xfffff0;
const RESPONSE_PSN = 0x123456;
const SIZES: QueuePairSizes = { depth: 64, segments: 4, inlineBytes: 64 };
/** 537 ms: a guest under emulation may be busy for long. */
const ACK_TIMEOUT = 17;
/** IBTA 9.7.6.1.3. */
export const ACK_TIMEOUT_US = 4.096 * 2 ** ACK_TIMEOUT;
const DEFAULTS = {
  access: EVERYTHING,
  ackTimeout: ACK_TIMEOUT,
  retryCount: 6,
  rnrRetryCount: 7,
  minRnrTimer: 12,
  reads: 4,
};

export async function openEnds(requester: ManualEnd, responder: ManualEnd): Promise<Ends> {
  return {
    requester: { end: requester, domain: await requester.domain() },
    responder: { end: responder, domain: await responder.domain() },
  };
}

export async function connectPair(ends: Ends, options: PairOptions): Promise<Connected> {
  const { requester, responder } = ends;
  const { type = QpType.RC } = options;
  const isReliable = type === QpType.RC;
  const from = await requester.end.queuePair(requester.domain, type, SIZES);
  const to = await responder.end.queuePair(responder.domain, type, SIZES);
  const common = { ...DEFAULTS, ...options };
  // Unreliable connections have neither reads nor atomics.
  const most = isReliable ? EVERYTHING : LOCAL_WRITE | REMOTE_WRITE;
  await requester.end.connect(from, {
    ...common,
    ...{ address: responder.end.address, qpn: to.qpn, access: most },
    ...{ sendPsn: REQUEST_PSN, receivePsn: RESPONSE_PSN },
  });
  await responder.end.connect(to, {
    ...common,
    ...{ address: requester.end.address, qpn: from.qpn, access: common.access & most },
    ...{ sendPsn: RESPONSE_PSN, receivePsn: REQUEST_PSN },
  });
  return { requester: from, responder: to };
}
