/**
 * One end of a connection, as a script sees it: verbs by number and by name, the same words whether
 * the kernel does them (kernel-end.ts), a device of ours (device-end.ts) or DAT (dat-end.ts). Calls
 * are done in the order in which they are made, so a script may make several before it waits.
 */
import type { QpType, WrOpcode } from '../../../core/spi/index.js';

export interface Domain {
  readonly id: number;
}

export interface Region {
  readonly id: number;
  readonly address: bigint;
  readonly rkey: number;
}

export interface Window {
  readonly id: number;
}

export interface Handle {
  readonly id: number;
}

export interface Pair {
  readonly id: number;
  readonly qpn: number;
}

export interface Segment {
  readonly region: Region;
  readonly offset: number;
  readonly length: number;
}

export interface QueuePairSizes {
  /** Entries of each queue. */
  readonly depth: number;
  readonly segments: number;
  readonly inlineBytes: number;
}

/** What a connection by hand is made of; UC looks at the first half. */
export interface ManualConnection {
  readonly address: string;
  readonly qpn: number;
  readonly sendPsn: number;
  readonly receivePsn: number;
  readonly mtuBytes: number;
  /** Bits of Access. */
  readonly access: number;
  readonly ackTimeout: number;
  readonly retryCount: number;
  readonly rnrRetryCount: number;
  readonly minRnrTimer: number;
  readonly reads: number;
}

/** What a connection by the connection manager is asked to be. */
export interface ConnectionWishes {
  readonly sizes: QueuePairSizes;
  readonly reads: number;
  readonly rnrRetryCount: number;
  readonly minRnrTimer: number;
  readonly mtuBytes: number;
}

export interface Request {
  readonly opcode: WrOpcode;
  readonly wr: number;
  /** Bits of WrFlags; INLINE takes the bytes of the segments when it is posted. */
  readonly flags?: number;
  readonly segments?: readonly Segment[];
  /** Or the key to invalidate. */
  readonly immediate?: number;
  readonly remoteAddress?: bigint;
  readonly rkey?: number;
  readonly compareAdd?: bigint;
  readonly swap?: bigint;
  readonly datagram?: { readonly handle: Handle; readonly qpn: number; readonly qkey: number };
}

export interface Bind {
  readonly wr: number;
  readonly window: Window;
  readonly segment: Segment;
  readonly access: number;
}

export interface Completion {
  readonly wr: number;
  /** A name of WcStatus; of DatDtoStatus from DAT. */
  readonly status: string;
  /** A name of WcOpcode; undefined if it failed. */
  readonly opcode: string | undefined;
  /** As the other fields, meaningless unless it succeeded. */
  readonly bytes: number;
  /** The immediate, or the key that was invalidated: of receives that have one. */
  readonly immediate: number | undefined;
  /** Datagrams only. */
  readonly sourceQpn: number | undefined;
}

export interface Completions {
  readonly sends: readonly Completion[];
  readonly receives: readonly Completion[];
}

/** What every end can do. */
export interface VerbsEnd {
  readonly name: string;
  /** Whose names `status` has. */
  readonly dialect: 'verbs' | 'dat';
  domain(): Promise<Domain>;
  /** Zeroed memory. @param access bits of Access */
  region(domain: Domain, lengthBytes: number, access: number): Promise<Region>;
  deregister(region: Region): Promise<void>;
  fill(segment: Segment, seed: number): Promise<void>;
  digest(segment: Segment): Promise<number>;
  put(region: Region, offset: number, value: bigint): Promise<void>;
  word(region: Region, offset: number): Promise<bigint>;
  window(domain: Domain): Promise<Window>;

  listen(port: number): Promise<void>;
  accept(domain: Domain, wishes: ConnectionWishes): Promise<Pair>;
  dial(address: string, port: number, domain: Domain, wishes: ConnectionWishes): Promise<Pair>;

  receive(pair: Pair, wr: number, segments: readonly Segment[]): Promise<void>;
  /** Prepares a request; `post` starts all that are prepared, in one go. */
  send(pair: Pair, request: Request): Promise<void>;
  /** Prepares a bind; returns the key that it will have. */
  bind(pair: Pair, bind: Bind): Promise<number>;
  post(pair: Pair): Promise<void>;
  /** The next so many completions of each queue; fewer only after `timeoutMs`. */
  poll(pair: Pair, sends: number, receives: number, timeoutMs?: number): Promise<Completions>;
  close(): Promise<void>;
}

/** An end that has queue pairs of every type and takes them to where they can send by hand. */
export interface ManualEnd extends VerbsEnd {
  readonly address: string;
  queuePair(domain: Domain, type: QpType, sizes: QueuePairSizes): Promise<Pair>;
  connect(pair: Pair, connection: ManualConnection): Promise<void>;
  datagrams(pair: Pair, qkey: number, sendPsn: number): Promise<void>;
  handle(domain: Domain, address: string): Promise<Handle>;
  /** A name of QpState. */
  state(pair: Pair): Promise<string>;
  /** To ERR: what is left is flushed. */
  toError(pair: Pair): Promise<void>;
}

export const POLL_TIMEOUT_MS = 20_000;
