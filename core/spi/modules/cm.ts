/**
 * Contract of a CM module (IBTA 12; rdma_cm's conventions on the wire). The module takes queue
 * pairs from INIT to RTS and to ERR; core takes them to INIT and destroys them. Handlers run in the
 * pump, one event at a time, in order.
 */
import type { Gid } from '../wire/address.js';
import type { QueuePair } from '../device/device.js';
import type { ConnectionRecord } from '../device/device-share.js';
import type { MadAddress } from './mad.js';

/** Private data limits in bytes, as consumers see them behind rdma_cm's header. */
export const CmPrivateData = { REQ: 56, REP: 196, REJ: 148, SIDR_REQ: 180, SIDR_REP: 136 } as const;

/** The limits with a service id of no port: without rdma_cm's header, the whole field is free. */
export const CmRawPrivateData = { REQ: 92, REP: 196, REJ: 148 } as const;

/** Port spaces of rdma_cm; a service id is (space << 16) | port. */
export const PortSpace = { TCP: 0x0106n, UDP: 0x0111n, IB: 0x013fn } as const;

/** Service id of a port (0 to 65535) in a port space. */
export function serviceIdOf(space: bigint, port: number): bigint {
  return (space << 16n) | BigInt(port);
}

/**
 * IP over InfiniBand's port space: nothing listens on it here, but its requests have the header.
 */
const IPOIB_PORT_SPACE = 0x0002n;
const HEADED_SPACES: readonly bigint[] = [...Object.values(PortSpace), IPOIB_PORT_SPACE];

/**
 * True if a service id is that of a port of rdma_cm, whose requests carry its header: a known port
 * space, and zeros above it.
 */
export function isPortServiceId(serviceId: bigint): boolean {
  return HEADED_SPACES.includes(serviceId >> 16n);
}

/** The port of such a service id; 0 for any other. */
export function portOfServiceId(serviceId: bigint): number {
  return isPortServiceId(serviceId) ? Number(serviceId & 0xffffn) : 0;
}

export interface CmModule {
  /**
   * @throws SpiError('EADDRINUSE') when something listens on that service id; ('EOPNOTSUPP') when
   * it is that of no port (`isPortServiceId`), and the module knows ports only, or for a transport
   * that the module does not connect
   */
  listen(options: CmListenOptions): CmListener;
  /**
   * Starts to connect; the outcome is an event.
   * @throws SpiError('EINVAL') private data too long, QP not in INIT; ('ENETUNREACH') no local
   * address of that family; ('EOPNOTSUPP') as `listen`
   */
  connect(options: CmConnectOptions): CmConnection;
  /** Present when the module resolves service ids for datagrams (SIDR). */
  resolve?(options: CmResolveOptions): CmResolution;
  /** Disconnects remaining connections (one DREQ each), stops timers. Idempotent. */
  close(): Promise<void>;
  /**
   * The process is ending: ends every connection with one DREQ (or REJ), which is handed to the MAD
   * module before this returns. No event follows.
   * @param mayGoOn called before each: false leaves the rest without a message
   */
  sayGoodbye?(mayGoOn: () => boolean): void;
  /** Sends a DREQ for a connection of another process of a shared device, which was killed. */
  disconnectFor?(record: ConnectionRecord): void;
  /**
   * Accepts a request that arrived at another process of a shared device, with a queue pair of this
   * one: REP has a communication id of this process.
   * @throws SpiError as `CmRequest.accept`; ('ENOTCONN') also when the request is refused here
   */
  acceptHanded?(request: HandedRequest, options: CmAcceptOptions): CmConnection;
  /** The peer has repeated the request: sends the answer again, if it is due. */
  repeatHanded?(request: HandedRequest): void;
}

/** A connection request that arrived at another process of a shared device. */
export interface HandedRequest {
  /** The REQ: a MAD of 256 bytes. */
  readonly data: Uint8Array;
  readonly source: MadAddress;
}

/** The CM of another process, for a queue pair of that process. */
export interface CmElsewhere {
  /**
   * As `CmModule.acceptHanded`; the queue pair is `options.qp`, whose end ends the connection
   * there. Events come later, or never if that process ends.
   */
  accept(request: HandedRequest, options: CmAcceptOptions): void;
  /** As `CmModule.repeatHanded`. */
  repeat(request: HandedRequest): void;
}

export interface CmListenOptions {
  readonly serviceId: bigint;
  /** Requests handed out and not yet answered; further ones are dropped and the peer retries. */
  readonly backlog: number;
  /** Takes connection requests. Without it, all are refused, like those of another transport. */
  readonly onRequest?: (request: CmRequest) => void;
  /**
   * The transport that the consumer can accept; default `rc`. The module itself refuses requests of
   * another transport: with REJ 28 on a service id of rdma_cm, as Linux does, else with REJ 9.
   */
  readonly transport?: CmRequest['transport'];
  /**
   * Takes SIDR questions for the queue pair of a datagram service; without it, status 1 is sent.
   */
  readonly onResolve?: (request: CmResolveRequest) => void;
}

export interface CmListener {
  /** Later requests are refused (REJ 8); those handed out stay valid. */
  close(): void;
}

/** Parameters that both sides choose. */
export interface CmParameters {
  /** RDMA reads and atomics that we serve, and that we issue; 0 to 255. */
  readonly responderResources: number;
  readonly initiatorDepth: number;
  /** 0 to 7. */
  readonly retryCount: number;
  readonly rnrRetryCount: number;
  /** RNR NAK timer code that our QP asks for, 0 to 31. */
  readonly minRnrTimer: number;
  /** Access flags of the QP. */
  readonly accessFlags: number;
}

export interface CmConnectOptions extends CmParameters {
  readonly qp: QueuePair;
  readonly remoteGid: Gid;
  readonly localGidIndex?: number;
  readonly serviceId: bigint;
  /** At most 56 bytes; 92 with a service id of no port. */
  readonly privateData: Uint8Array;
  /**
   * Overall limit until the peer has answered, in microseconds; Infinity: only the CM's retries.
   */
  readonly timeoutUs: number;
  /** Local ACK timeout exponent (4.096 us * 2^n, 1 to 31) proposed for both QPs; default 18. */
  readonly ackTimeout?: number;
  /** Upper bound in bytes; default the device's active MTU. */
  readonly pathMtuBytes?: number;
  readonly onEvent: (event: CmEvent) => void;
}

export type CmEvent =
  /** Both sides are in RTS (active), or RTU or data has arrived (passive: no private data). */
  | { readonly type: 'established'; readonly privateData: Uint8Array }
  /** REJ: `reason` by IBTA table 108; `consumer` when the peer's consumer refused (28). */
  | {
      readonly type: 'rejected';
      readonly reason: number;
      readonly consumer: boolean;
      readonly privateData: Uint8Array;
      /** Additional reject information (ARI): an acceptable GID, an MTU ...; absent if none. */
      readonly info?: Uint8Array;
    }
  /** No answer within the CM's retries, or unreachable by the network's report. */
  | { readonly type: 'unreachable'; readonly detail: string }
  /** `timeoutUs` has passed. */
  | { readonly type: 'timed-out' }
  /** The passive side's handshake did not finish. */
  | { readonly type: 'accept-failed'; readonly detail: string }
  /** Disconnected by either side; the QP is in ERR. */
  | {
      readonly type: 'disconnected';
      readonly byPeer: boolean;
      /** The system's report, if neither side has disconnected. */
      readonly failure?: string;
    }
  /** The QP number may be used again. */
  | { readonly type: 'timewait-exit' };

export interface CmConnection {
  /** Name of the state in the CM's table, for messages. */
  readonly state: string;
  readonly remoteGid: Gid;
  /**
   * Own port of rdma_cm: on the active side the one in its header, on the passive side the
   * requested one. 0 with a service id of no port, and while it is not known.
   */
  readonly localPort: number;
  /** Moves the QP to ERR and sends DREQ (or DREP if a DREQ has arrived). Later calls do nothing. */
  disconnect(): void;
  /** Core has received data before RTU: the passive side is established now (IBTA 12.9.6). */
  notifyEstablished(): void;
  /** Ends the connection without waiting for the peer; no event follows. */
  abandon(): void;
  /** Messages and transitions, oldest first: text for people. */
  flightRecord(): readonly string[];
}

export interface CmRequest {
  readonly serviceId: bigint;
  /** The object to accept it with: an RC queue pair, or an XRC target. */
  readonly transport: 'rc' | 'xrc';
  readonly privateData: Uint8Array;
  readonly remoteGid: Gid;
  /** Source port in rdma_cm's header; 0 if the request has none. */
  readonly remotePort: number;
  readonly localGid: Gid;
  readonly remoteQpn: number;
  /** The peer's own two values, swapped: limits for our parameters. */
  readonly responderResources: number;
  readonly initiatorDepth: number;
  readonly retryCount: number;
  readonly rnrRetryCount: number;
  readonly pathMtuBytes: number;
  /**
   * Sends REP; the QP is ready to receive when this returns.
   * @throws SpiError('EINVAL') private data too long, or QP not in INIT; ('ENOTCONN') the request
   * is gone (peer gave up, already answered)
   */
  accept(options: CmAcceptOptions): CmConnection;
  /** Sends REJ. @throws as accept */
  reject(options: CmRejectOptions): void;
}

export interface CmAcceptOptions extends CmParameters {
  readonly qp: QueuePair;
  readonly privateData: Uint8Array;
  readonly onEvent: (event: CmEvent) => void;
}

export interface CmRejectOptions {
  /** IBTA table 108; 28 is "consumer reject", 8 "invalid service id". */
  readonly reason: number;
  readonly privateData: Uint8Array;
  /** Additional reject information, at most 72 bytes. */
  readonly info?: Uint8Array;
}

export interface CmResolveOptions {
  readonly remoteGid: Gid;
  readonly localGidIndex?: number;
  readonly serviceId: bigint;
  /** At most 180 bytes, or 216 with a service id that is not rdma_cm's. */
  readonly privateData: Uint8Array;
  /** Overall limit in microseconds; Infinity: only the CM's retries. */
  readonly timeoutUs: number;
  /** Called once, unless cancelled. */
  readonly onResult: (result: CmResolveResult) => void;
}

export interface CmResolution {
  /** Name of the state in the CM's table, for messages. */
  readonly state: string;
  /** No result follows. */
  cancel(): void;
}

export interface CmResolveResult {
  /** SIDR_REP status (IBTA 12.11.2.1): 0 is a valid QPN; -1 for no answer. */
  readonly status: number;
  readonly qpn: number;
  readonly qkey: number;
  readonly privateData: Uint8Array;
  /** With status -1: why there is no answer. */
  readonly failure?: 'timed-out' | 'unreachable';
  /** The network's report, in words for people. */
  readonly detail?: string;
}

/** A question for the queue pair of a datagram service; answered once. */
export interface CmResolveRequest {
  readonly serviceId: bigint;
  readonly privateData: Uint8Array;
  readonly remoteGid: Gid;
  /** Source port in rdma_cm's header; 0 if the request has none. */
  readonly remotePort: number;
  readonly localGid: Gid;
  /**
   * Sends SIDR_REP with the queue pair.
   * @throws SpiError('EINVAL') private data too long, QPN or Q_Key out of range; ('ENOTCONN') the
   * request is gone (peer gave up, already answered)
   */
  accept(options: CmResolveAcceptOptions): void;
  /** Sends SIDR_REP without one. @throws as accept */
  reject(options: CmResolveRejectOptions): void;
}

export interface CmResolveAcceptOptions {
  readonly qpn: number;
  readonly qkey: number;
  /** At most 136 bytes. */
  readonly privateData: Uint8Array;
}

export interface CmResolveRejectOptions {
  /** SIDR_REP status, 1 to 255; 2 is "rejected by service provider". */
  readonly status: number;
  readonly privateData: Uint8Array;
}
