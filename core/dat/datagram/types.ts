/** Plain data about endpoints for datagrams. */
import type { Evd } from '../../evd/index.js';
import type { UdEpAttributes } from './attributes.js';
import type { Pz } from '../memory/pz.js';

/** @internal parts of an endpoint for datagrams */
export interface UdEpInit {
  readonly pz: Pz;
  readonly recvEvd: Evd;
  readonly requestEvd: Evd;
  readonly privateEvds: readonly Evd[];
  readonly attributes: UdEpAttributes;
}

/** READY, or ERROR after a failure of the queue pair: everything flushes until `ep.reset()`. */
export type UdEpState = 'READY' | 'ERROR';
