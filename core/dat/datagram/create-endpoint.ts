/** Creates endpoints for datagrams. */
import { type Evd, EvdFlags } from '../../evd/index.js';
import { UdEp } from './endpoint.js';
import { type UdEpAttributes, udEpAttributes } from './attributes.js';
import { checkOptions } from '../../errors/guards.js';
import { checkHandle } from '../common/handle.js';
import type { IaCore } from '../common/adapter-state.js';
import { requireCapability } from '../common/unsupported.js';
import { Pz } from '../memory/pz.js';
import type { UdEpInit } from './types.js';

/** Options of `ia.createUdEndpoint`. */
export interface UdEndpointOptions {
  readonly pz: Pz;
  /** Takes completions of receives; without one, see `UdEp.completions$`. */
  readonly recvEvd?: Evd;
  /** Takes completions of sends; may be the same. */
  readonly requestEvd?: Evd;
  readonly attributes?: Partial<UdEpAttributes>;
}

const OPERATION = 'ia.createUdEndpoint';

export function createUdEndpoint(core: IaCore, options: UdEndpointOptions): UdEp {
  core.begin(OPERATION);
  checkOptions(OPERATION, options, ['pz', 'recvEvd', 'requestEvd', 'attributes']);
  checkHandle(OPERATION, Pz, 'PZ', options.pz, core);
  const { pz, recvEvd, requestEvd } = options;
  core.checkEvdOption(OPERATION, 'recv', recvEvd);
  core.checkEvdOption(OPERATION, 'request', requestEvd);
  const { device } = core.context;
  requireCapability(OPERATION, device, 'ud', 'unreliable datagrams');
  const attributes = udEpAttributes(OPERATION, options.attributes ?? {}, device.attributes);
  const dtos = attributes.maxRecvDtos + attributes.maxRequestDtos;
  const own = recvEvd && requestEvd ? undefined : core.newEvd(dtos, EvdFlags.DTO);
  const init: UdEpInit = {
    pz,
    recvEvd: recvEvd ?? (own as Evd),
    requestEvd: requestEvd ?? (own as Evd),
    privateEvds: own === undefined ? [] : [own],
    attributes,
  };
  // If creation fails, the constructor has freed the private event dispatcher.
  return core.adopt(new UdEp(core, init));
}
