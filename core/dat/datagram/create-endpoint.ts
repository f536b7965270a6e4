/** Making endpoints for datagrams. */
import { DatError } from '../../errors/index.js';
import { type Evd, EvdFlags } from '../../evd/index.js';
import { UdEp } from './endpoint.js';
import { type UdEpAttributes, udEpAttributes } from './attributes.js';
import { checkOptions } from '../../errors/guards.js';
import { checkHandle } from '../common/handle.js';
import type { IaCore } from '../ia/core.js';
import { Pz } from '../memory/pz.js';

/** What `ia.createUdEndpoint` takes. */
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
  checkOptions(OPERATION, 2, options, ['pz', 'recvEvd', 'requestEvd', 'attributes']);
  checkHandle(OPERATION, Pz, 'PZ', options.pz, core);
  const { pz, recvEvd, requestEvd } = options;
  core.checkEvdOption(OPERATION, 'recv', recvEvd);
  core.checkEvdOption(OPERATION, 'request', requestEvd);
  const { device } = core.context;
  if (!device.capabilities.has('ud')) {
    const message = `device ${device.name} has no unreliable datagrams`;
    throw new DatError('DAT_MODEL_NOT_SUPPORTED', { operation: OPERATION, message });
  }
  const attributes = udEpAttributes(OPERATION, options.attributes ?? {}, device.attributes);
  const dtos = attributes.maxRecvDtos + attributes.maxRequestDtos;
  const own: Evd[] = [];
  const makePrivate = (): Evd => {
    const evd = own[0] ?? core.newEvd(dtos, EvdFlags.DTO);
    own[0] = evd;
    return evd;
  };
  const init = {
    pz,
    recvEvd: recvEvd ?? makePrivate(),
    requestEvd: requestEvd ?? makePrivate(),
    privateEvds: own,
    attributes,
  };
  try {
    return core.adopt(new UdEp(core, init));
  } catch (error) {
    for (const evd of own) core.freePrivateEvd(evd);
    throw error;
  }
}
