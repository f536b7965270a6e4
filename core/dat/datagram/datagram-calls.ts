/** The call of an interface adapter that makes endpoints for datagrams. */
import { DatError } from '../../errors/index.js';
import { type Evd, EvdFlags } from '../../evd/index.js';
import { UdEp } from './endpoint.js';
import { type UdEpAttributes, udEpAttributes } from './attributes.js';
import { checkOptions } from '../common/guards.js';
import { checkHandle } from '../common/handle.js';
import { IaServicePoints } from '../connect/service-point-calls.js';
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

export abstract class IaDatagrams extends IaServicePoints {
  /**
   * Makes an endpoint for unreliable datagrams (IB extension: service type UD), ready for use.
   * @throws DatError DAT_MODEL_NOT_SUPPORTED when the device has none, DAT_INVALID_HANDLE,
   * DAT_INVALID_PARAMETER (attributes), DAT_INSUFFICIENT_RESOURCES / DAT_RESOURCE_TEP
   */
  createUdEndpoint(options: UdEndpointOptions): UdEp {
    this.begin(OPERATION);
    checkOptions(OPERATION, 2, options, ['pz', 'recvEvd', 'requestEvd', 'attributes']);
    checkHandle(OPERATION, Pz, 'PZ', options.pz, this.self);
    const { pz, recvEvd, requestEvd } = options;
    this.checkEvdOption(OPERATION, 'recv', recvEvd);
    this.checkEvdOption(OPERATION, 'request', requestEvd);
    const { device } = this.context;
    if (!device.capabilities.has('ud')) {
      const message = `device ${device.name} has no unreliable datagrams`;
      throw new DatError('DAT_MODEL_NOT_SUPPORTED', { operation: OPERATION, message });
    }
    const attributes = udEpAttributes(OPERATION, options.attributes ?? {}, device.attributes);
    const dtos = attributes.maxRecvDtos + attributes.maxRequestDtos;
    const own: Evd[] = [];
    const makePrivate = (): Evd => {
      const evd = own[0] ?? this.newEvd(dtos, EvdFlags.DTO);
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
      return this.adopt(new UdEp(this.self, init));
    } catch (error) {
      for (const evd of own) this.freePrivateEvd(evd);
      throw error;
    }
  }
}
