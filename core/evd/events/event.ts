/** Events as a consumer gets them: the numbers of dat.h, readonly, one union. */
import type { AsyncEventType } from '../../spi/index.js';
import type { ConnectionCause } from './connection-causes.js';
import type { DatDto, DatDtoStatus } from './dto-status.js';
import type { Cno } from '../cno/cno.js';
import type { Evd } from '../evd.js';
import type { Cr } from '../../dat/connect/cr.js';
import type { UdEp } from '../../dat/datagram/endpoint.js';
import type { Ep } from '../../dat/endpoint/ep.js';
import type { Ia } from '../../dat/ia/ia.js';
import type { Srq } from '../../dat/srq/srq.js';
import type { Rmr } from '../../dat/window/rmr.js';
import type { ServicePoint } from '../../dat/connect/service-point.js';
import type { XrcDomain } from '../../dat/xrc/domain.js';
import type { XrcSrq } from '../../dat/xrc/srq.js';

/** DAT_EVENT_NUMBER. */
export const DatEventNumber = {
  DTO_COMPLETION: 0x00001,
  RMR_BIND_COMPLETION: 0x01001,
  CONNECTION_REQUEST: 0x02001,
  ESTABLISHED: 0x04001,
  PEER_REJECTED: 0x04002,
  NON_PEER_REJECTED: 0x04003,
  ACCEPT_COMPLETION_ERROR: 0x04004,
  DISCONNECTED: 0x04005,
  BROKEN: 0x04006,
  TIMED_OUT: 0x04007,
  UNREACHABLE: 0x04008,
  ASYNC_EVD_OVERFLOW: 0x08001,
  ASYNC_IA_CATASTROPHIC: 0x08002,
  ASYNC_EP_BROKEN: 0x08003,
  ASYNC_TIMED_OUT: 0x08004,
  ASYNC_PROVIDER_INTERNAL_ERROR: 0x08005,
  ASYNC_HA_DOWN_TO_1: 0x08101,
  ASYNC_HA_UP_TO_MULTI_PATH: 0x08102,
  SOFTWARE: 0x10001,
  IB_DTO: 0x40000,
  /** Ours, in the range of the IB extensions. */
  XRC_RECEIVE: 0x4f001,
  XRC_TARGET: 0x4f002,
} as const;
export type DatEventNumber = (typeof DatEventNumber)[keyof typeof DatEventNumber];

type N = typeof DatEventNumber;
export type ConnectionEventNumber =
  | N['ESTABLISHED']
  | N['PEER_REJECTED']
  | N['NON_PEER_REJECTED']
  | N['ACCEPT_COMPLETION_ERROR']
  | N['DISCONNECTED']
  | N['BROKEN']
  | N['TIMED_OUT']
  | N['UNREACHABLE'];
export type AsyncErrorNumber =
  | N['ASYNC_EVD_OVERFLOW']
  | N['ASYNC_IA_CATASTROPHIC']
  | N['ASYNC_EP_BROKEN']
  | N['ASYNC_TIMED_OUT']
  | N['ASYNC_PROVIDER_INTERNAL_ERROR']
  | N['ASYNC_HA_DOWN_TO_1']
  | N['ASYNC_HA_UP_TO_MULTI_PATH'];

/** A data transfer operation has ended. */
export interface DtoCompletionEvent {
  readonly type: 'dto';
  /** IB_DTO for the operations of the IB extensions. */
  readonly number: N['DTO_COMPLETION'] | N['IB_DTO'];
  readonly ep: Ep;
  /** Safe integer that the consumer gave to the post. */
  readonly cookie: number;
  readonly status: DatDtoStatus;
  /** Bytes; 0 unless `status` is SUCCESS. */
  readonly transferredLength: number;
  readonly operation: DatDto;
  /** Immediate data of a receive, u32 in wire order. */
  readonly immediate?: number;
  /** The RMR context that the peer invalidated (receive with invalidate). */
  readonly invalidatedRmrContext?: number;
  /** Provider detail of a failure, for people. */
  readonly vendorError?: number;
}

/** Source of a datagram. Pass it to `ep.createAddressHandle` to answer. */
export interface DatagramSource {
  /** IP address, as text. */
  readonly address: string;
  readonly qpn: number;
}

/** A datagram has been sent or received (an IB extension of DAT). */
export interface DatagramEvent {
  readonly type: 'datagram';
  readonly number: N['IB_DTO'];
  readonly ep: UdEp;
  /** Safe integer that the consumer gave to the post. */
  readonly cookie: number;
  readonly status: DatDtoStatus;
  /** Bytes, with the 40 of the GRH area on a receive; 0 unless `status` is SUCCESS. */
  readonly transferredLength: number;
  /** DatDto.SEND_UD, RECV_UD or RECV_UD_IMMED. */
  readonly operation: DatDto;
  /** Source of a receive that succeeded. */
  readonly source?: DatagramSource;
  /** RECV_UD_IMMED: u32 in wire order. */
  readonly immediate?: number;
  /** Provider detail of a failure, for people. */
  readonly vendorError?: number;
}

/** A bind, rebind or unbind has ended. */
export interface RmrBindCompletionEvent {
  readonly type: 'rmr-bind';
  readonly number: N['RMR_BIND_COMPLETION'];
  readonly rmr: Rmr;
  readonly ep: Ep;
  readonly cookie: number;
  readonly status: DatDtoStatus;
}

/** A peer asks for a connection. */
export interface ConnectionRequestEvent {
  readonly type: 'connection-request';
  readonly number: N['CONNECTION_REQUEST'];
  /** The service point that the request came to. */
  readonly sp: ServicePoint;
  readonly cr: Cr;
  /** Port of rdma_cm's TCP port space; 0 if `sp.serviceId` has no port. */
  readonly connQual: number;
  /** Address of the interface adapter that the request came to. */
  readonly localAddress?: string;
  /** Private data was cut (DAT 2.0 truncate_flag). */
  readonly truncated: boolean;
}

/** A connection has been established, has failed or has ended. */
export interface ConnectionEvent {
  readonly type: 'connection';
  readonly number: ConnectionEventNumber;
  readonly ep: Ep;
  /**
   * Private data of the peer, in ESTABLISHED on the connecting side and in PEER_REJECTED; else
   * empty. CM messages of InfiniBand and RoCE do not carry its length: it is padded with zeros, to
   * 196 bytes in an acceptance and 148 in a rejection. iWARP devices report the length.
   */
  readonly privateData: Uint8Array;
  /** Reject reason of the CM (IBTA 12.6.7.2) where there is one. */
  readonly rejectReason?: number;
  /** One sentence for people. */
  readonly reason?: string;
  /**
   * The cause, for programs. BROKEN always has one. DISCONNECTED has one if the peer's last message
   * found no receive posted here (NO_RECEIVE_POSTED), and the device tracks that.
   */
  readonly cause?: ConnectionCause;
  /** BROKEN: the last transitions, PSNs and CM messages of the connection, oldest first. */
  readonly flightRecord?: readonly string[];
}

/** DAT's reasons of asynchronous errors, by the kind of object that they name. */
export const AsyncErrorReason = {
  IA: { CATASTROPHIC: 0, OTHER: 1 },
  EP: { TRANSFER_TO_ERROR: 0, OTHER: 1, SRQ_SOFT_HIGH_WATERMARK: 2 },
  EVD: { OVERFLOW: 0, OTHER: 1 },
  SRQ: { TRANSFER_TO_ERROR: 0, OTHER: 1, LOW_WATERMARK: 2 },
  OTHER: { OTHER: 0 },
} as const;

/** An error that no call and no completion reports. */
export interface AsyncErrorEvent {
  readonly type: 'async-error';
  readonly number: AsyncErrorNumber;
  readonly object: Ia | Ep | UdEp | Srq | Evd | Cno;
  /** A number of `AsyncErrorReason` for the kind of `object`. */
  readonly reason: number;
  /** One sentence for people. */
  readonly message: string;
  /** The error that a handler or a provider threw. */
  readonly cause?: unknown;
}

/** An event that a consumer posted with `evd.postSe`. */
export interface SoftwareEvent {
  readonly type: 'software';
  readonly number: N['SOFTWARE'];
  readonly payload: unknown;
}

/** A receive of an XRC shared receive queue has ended; a target took it, not an endpoint. */
export interface XrcReceiveEvent {
  readonly type: 'xrc-receive';
  readonly number: N['XRC_RECEIVE'];
  readonly srq: XrcSrq;
  /** The target that received the message; senders differ by it. */
  readonly targetQpn: number;
  readonly cookie: number;
  readonly status: DatDtoStatus;
  /** Bytes; 0 unless `status` is SUCCESS. */
  readonly transferredLength: number;
  readonly operation: DatDto;
  /** Immediate data, u32 in wire order. */
  readonly immediate?: number;
  /** The RMR context that the peer invalidated. */
  readonly invalidatedRmrContext?: number;
  /** Provider detail of a failure, for people. */
  readonly vendorError?: number;
}

/** Events of an XRC target: those of its queue pair, and of its connection. */
export type XrcTargetEventName =
  keyof typeof AsyncEventType | 'ESTABLISHED' | 'ACCEPT_FAILED' | 'DISCONNECTED';

/**
 * An event of an XRC target. Every adapter registered with the target gets events of its queue
 * pair; only the one that accepted its connection gets events of that.
 */
export interface XrcTargetEvent {
  readonly type: 'xrc-target';
  readonly number: N['XRC_TARGET'];
  readonly domain: XrcDomain;
  readonly targetQpn: number;
  readonly event: XrcTargetEventName;
}

export type DatEvent =
  | XrcReceiveEvent
  | XrcTargetEvent
  | DtoCompletionEvent
  | DatagramEvent
  | RmrBindCompletionEvent
  | ConnectionRequestEvent
  | ConnectionEvent
  | AsyncErrorEvent
  | SoftwareEvent;

/** Events that the library posts to an EVD, as opposed to completions and `postSe`. */
export type PostedEvent = Exclude<
  DatEvent,
  DtoCompletionEvent | DatagramEvent | RmrBindCompletionEvent | XrcReceiveEvent
>;
