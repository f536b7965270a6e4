/** Plain data about endpoints. */
import type { Evd } from '../evd/index.js';
import type { EpAttributes } from './ep-attributes.js';
import type { EpStateName } from './ep-states.js';
import type { Ia } from './ia.js';
import type { Pz } from './pz.js';
import type { Srq } from './srq.js';

/** What an endpoint is made of: the event dispatchers are there, given or private. */
export interface EpInit {
  readonly pz: Pz;
  readonly recvEvd: Evd;
  readonly requestEvd: Evd;
  readonly connectEvd: Evd;
  /** The private ones of these, offered as streams and freed with the endpoint. */
  readonly privateEvds: readonly Evd[];
  readonly attributes: EpAttributes;
  readonly srq: Srq | undefined;
}

/** What `ep.query()` tells. */
export interface EpParameters {
  readonly ia: Ia;
  readonly state: EpStateName;
  /** DAT_EP_STATE. */
  readonly stateNumber: number;
  readonly pz: Pz;
  /** Receives come from here. */
  readonly srq: Srq | undefined;
  readonly recvEvd: Evd;
  readonly requestEvd: Evd;
  readonly connectEvd: Evd;
  readonly attributes: EpAttributes;
  readonly localAddress: string;
  /** Of the present or last connection. */
  readonly remoteAddress: string | undefined;
  /** Queue pair number; another one after each reset. */
  readonly qpn: number;
}

/** What `ep.getStatus()` tells. */
export interface EpStatus {
  readonly state: EpStateName;
  /** No receive (no request) is outstanding, as far as completions have been taken in. */
  readonly recvIdle: boolean;
  readonly requestIdle: boolean;
}
