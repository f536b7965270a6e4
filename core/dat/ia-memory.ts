/** The calls of an interface adapter that make protection zones and shared receive queues. */
import { DatError, spiCall } from '../errors/index.js';
import { checkOptions } from './guards.js';
import { checkHandle } from './handle.js';
import { IaRegions } from './ia-regions.js';
import { Pz } from './pz.js';
import { Srq } from './srq.js';
import { srqAttributes, type SrqOptions } from './srq-attributes.js';

export abstract class IaMemory extends IaRegions {
  /** Makes a protection zone (dat_pz_create). */
  createPz(): Pz {
    this.begin('ia.createPz');
    const { device } = this.context;
    const pd = spiCall({ operation: 'ia.createPz', map: { ENOMEM: NO_ZONE } }, () =>
      device.createProtectionDomain(),
    );
    return this.adopt(new Pz(this.self, pd));
  }

  /**
   * Makes a shared receive queue (dat_srq_create): pass it to `createEndpoint`.
   * @throws DatError DAT_MODEL_NOT_SUPPORTED when the provider has none (provider attribute
   * `srqSupported`); DAT_INVALID_PARAMETER; DAT_INVALID_HANDLE (pz);
   * DAT_INSUFFICIENT_RESOURCES / DAT_RESOURCE_SRQ
   */
  createSrq(options: SrqOptions): Srq {
    const operation = 'ia.createSrq';
    this.begin(operation, { maxRecvDtos: options?.maxRecvDtos });
    const { device } = this.context;
    checkOptions(operation, 1, options, SRQ_OPTIONS);
    checkHandle(operation, Pz, 'PZ', options.pz, this.self);
    if (device.createSharedReceiveQueue === undefined) {
      throw new DatError('DAT_MODEL_NOT_SUPPORTED', {
        operation,
        message: 'this provider has no shared receive queues',
        hint: 'ia.query().provider.srqSupported tells',
      });
    }
    const attributes = srqAttributes(operation, options, device.attributes);
    const { maxRecvDtos: maxWr, maxRecvIov: maxSge } = attributes;
    const context = { operation, value: maxWr, map: { ENOMEM: NO_SRQ } };
    const create = device.createSharedReceiveQueue.bind(device);
    const { pd } = options.pz;
    const srq = new Srq(this.self, options.pz, attributes, (onEvent) =>
      spiCall(context, () => create({ pd, maxWr, maxSge, onEvent })),
    );
    return this.adopt(srq);
  }
}

const NO_ZONE = ['DAT_INSUFFICIENT_RESOURCES', 'DAT_RESOURCE_PROTECTION_DOMAIN'] as const;
const SRQ_OPTIONS = ['pz', 'maxRecvDtos', 'maxRecvIov', 'lowWatermark'];
const NO_SRQ = ['DAT_INSUFFICIENT_RESOURCES', 'DAT_RESOURCE_SRQ'] as const;
