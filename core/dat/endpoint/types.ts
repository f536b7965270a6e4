/** Plain data about endpoints. */
import type { Evd } from '../../evd/index.js';
import type { XrcDomain } from '../../spi/index.js';
import type { EpAttributes } from './attributes.js';
import type { EpInitialState, EpStateName } from './states.js';
import type { Pz } from '../memory/pz.js';
import type { Srq } from '../srq/srq.js';
import type { Ia } from '../ia/ia.js';

/** The parts of an endpoint. All event dispatchers are set, given or private. */
export interface EpInit {
  readonly pz: Pz;
  readonly recvEvd: Evd;
  readonly requestEvd: Evd;
  readonly connectEvd: Evd;
  /** Its private event dispatchers, offered as streams and freed with the endpoint. */
  readonly privateEvds: readonly Evd[];
  readonly srq: Srq | undefined;
  /** For an XRC initiator: the domain that creates its queue pair. */
  readonly xrc?: XrcDomain;
  readonly attributes: EpAttributes;
  /** Default UNCONNECTED. */
  readonly initialState?: EpInitialState;
}

/** Result of `ep.query()` (DAT_EP_PARAM). */
export interface EpParameters {
  readonly ia: Ia;
  readonly state: EpStateName;
  /** DAT_EP_STATE. */
  readonly stateNumber: number;
  readonly pz: Pz;
  /** Queue of its receives. */
  readonly srq: Srq | undefined;
  readonly recvEvd: Evd;
  readonly requestEvd: Evd;
  readonly connectEvd: Evd;
  readonly attributes: EpAttributes;
  readonly localAddress: string;
  /**
   * Own port of the present or last connection (DAT local_port_qual), known from ESTABLISHED on.
   * After a connect: the port in rdma_cm's header. After an accept: the requested port. 0 with a
   * service id of no port.
   */
  readonly localPortQual: number | undefined;
  /** Peer of the present or last connection. */
  readonly remoteAddress: string | undefined;
  /** Port that it connected to, 0 for a service id of no port; undefined when it has accepted. */
  readonly remoteConnQual: number | undefined;
  /** The service id in CM messages, also for a port (IBTA 12.7.3). */
  readonly remoteServiceId: bigint | undefined;
  /** As armed with `setWatermark`; Infinity when not. */
  readonly softWatermark: number;
  readonly hardWatermark: number;
  /** Queue pair number; another one after each reset. */
  readonly qpn: number;
}

/** Result of `ep.getStatus()`. */
export interface EpStatus {
  readonly state: EpStateName;
  /** No receive (no request) is outstanding. */
  readonly recvIdle: boolean;
  readonly requestIdle: boolean;
}

/**
 * Result of `ep.recvQuery()`; undefined (DAT_VALUE_UNKNOWN) with a shared receive queue if the
 * provider does not know it, as verbs does not.
 */
export interface EpReceives {
  /** Allocated to the endpoint and not completed. */
  readonly buffersAllocated: number | undefined;
  /** Receives that complete, at most, if all messages in flight arrive. */
  readonly bufferSpan: number | undefined;
}
