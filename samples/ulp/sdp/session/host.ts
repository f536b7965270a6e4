/**
 * Contract between a session and its host: the actions that a session requests, and its
 * configuration.
 */
import type { Advert, Body, Mode, Sequence } from '../wire/index.js';

/** Memory that the peer may access, until `release`. */
export interface Exposed {
  readonly rkey: number;
  readonly address: bigint;
  /** Ends the access. */
  release(): void;
}

/** Registered memory that receives bytes of the peer. */
export interface Area {
  readonly bytes: Uint8Array;
  /** Opens it to writes of the peer; undefined if no memory can be registered. */
  expose(): Exposed | undefined;
  /** The host may use it for something else. */
  release(): void;
}

/** A message to send. */
export interface Outgoing {
  readonly body: Body;
  readonly sequence: Sequence;
  /** Copied by the host before `post` returns. */
  readonly payload: readonly Uint8Array[];
  readonly payloadBytes: number;
  /** True to wake the peer's handler at once (IBTA: solicited event). */
  readonly isSolicited: boolean;
}

export interface SessionHost {
  /** Milliseconds, of a clock that never goes back. */
  now(): number;
  /** Requests that can be posted now. */
  readonly requestsFree: number;
  /** Posts a send. */
  post(message: Outgoing): void;
  /**
   * Posts the receive `slot` again.
   * @param bytes its size, at most `maxReceiveBytes`
   */
  repost(slot: number, bytes: number): void;
  /** Opens bytes of the consumer to reads of the peer; undefined if they cannot be registered. */
  exposeSource(bytes: Uint8Array): Exposed | undefined;
  /** Memory for data that a peer offers; undefined if all is in use. */
  takeArea(): Area | undefined;
  /** Posts an RDMA Read; `onReadDone` of the session follows, in order. */
  rdmaRead(area: Area, lengthBytes: number, from: Pick<Advert, 'rkey' | 'address'>): void;
  /**
   * Posts an RDMA Write of the consumer's bytes; `onWriteDone` of the session follows, in order.
   * @returns false if they cannot be registered: then nothing is posted
   */
  rdmaWrite(bytes: Uint8Array, to: Pick<Advert, 'rkey' | 'address'>): boolean;
  /** Posts an RDMA Write of no bytes, to check that the peer is alive. */
  probe(): void;
  /** Ends the connection of the CM after the posted requests. */
  disconnect(): void;
  /** Ends the connection immediately: posted requests are not sent. */
  cut(): void;
  /** Bytes can be read, or the end was received. */
  onReadable(): void;
  /** A byte that the peer sent as urgent. */
  onUrgent(byte: number): void;
  /** The session is over; called once. */
  onOver(failure?: Failure): void;
}

/** The reason that a session failed; codes of POSIX. */
export interface Failure {
  readonly code: 'ECONNRESET' | 'EPIPE' | 'EPROTO' | 'ETIMEDOUT';
  readonly detail: string;
}

/** Values that both sides agreed on, and settings of this side. */
export interface SessionConfig {
  /** Receives that are posted here, as in the Hello. */
  readonly receives: number;
  /** Bytes of each. */
  readonly receiveBytes: number;
  /** Largest size of a receive that a peer may request. */
  readonly maxReceiveBytes: number;
  readonly peer: {
    readonly bufs: number;
    readonly receiveBytes: number;
    readonly maxAdverts: number;
  };
  /** SrcAvail, and SinkAvail, that the peer may have outstanding. */
  readonly maxAdverts: number;
  /** Size that this side requests for the peer's receives if it has much to copy. */
  readonly wantedPeerBytes: number;
  readonly zeroCopy: ZeroCopyConfig;
  readonly times: SessionTimes;
}

export interface ZeroCopyConfig {
  /**
   * The most advanced mode that this side uses as a source, and requests as a sink; BUFFERED copies
   * everything.
   */
  readonly most: Mode;
  /** True if this side, as a sink, offers its own memory (SinkAvail) in pipelined mode. */
  readonly offersSink: boolean;
  /** Number of contiguous bytes from which they are not copied. */
  readonly thresholdBytes: number;
  /** Bytes of one SrcAvail at most. */
  readonly advertBytes: number;
}

/** Milliseconds, each 1 on. */
export interface SessionTimes {
  /** A SrcAvail that is not answered is cancelled. */
  readonly advertMs: number;
  /** A cancel that is not answered ends the connection. */
  readonly cancelMs: number;
  /** Wait for the peer's DisConn after `close`, and for the end of the CM's connection. */
  readonly finMs: number;
}
