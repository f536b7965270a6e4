/** The calls of an interface adapter that make zones, windows and shared receive queues. */
import { spiCall } from '../../errors/index.js';
import type { MemoryWindow } from '../../spi/index.js';
import { checkOptions } from '../common/guards.js';
import { checkHandle } from '../common/handle.js';
import { IaRegions } from './region-calls.js';
import { notSupported } from './lmr-options.js';
import { Pz } from './pz.js';
import { Rmr, type RmrScope } from './rmr.js';
import { Srq } from '../srq/srq.js';
import { srqAttributes, type SrqOptions } from '../srq/attributes.js';

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
   * Makes a memory window, unbound (dat_rmr_create): bound, it is open to peers of every endpoint
   * of its zone.
   * @throws DatError DAT_MODEL_NOT_SUPPORTED when the provider has no windows; DAT_INVALID_HANDLE;
   * DAT_INSUFFICIENT_RESOURCES / DAT_RESOURCE_MEMORY_REGION
   */
  createRmr(pz: Pz): Rmr {
    return this.makeRmr('ia.createRmr', pz, 'PZ');
  }

  /**
   * Makes a memory window, unbound (dat_rmr_create_for_ep): bound, it is open to the peer of the
   * endpoint that it is bound through, and to no other; that peer may invalidate it.
   * @throws DatError as `createRmr`
   */
  createRmrForEp(pz: Pz): Rmr {
    return this.makeRmr('ia.createRmrForEp', pz, 'EP');
  }

  private makeRmr(operation: string, pz: Pz, scope: RmrScope): Rmr {
    this.begin(operation, { pz });
    const { device } = this.context;
    checkHandle(operation, Pz, 'PZ', pz, this.self);
    if (device.createMemoryWindow === undefined) {
      const hint = 'give peers the rmrContext of a region of its own';
      throw notSupported(operation, 'this provider has no memory windows', hint);
    }
    const type = scope === 'PZ' ? 1 : 2;
    const window = spiCall({ operation, map: { ENOMEM: NO_WINDOW } }, () =>
      device.createMemoryWindow?.(pz.pd, type),
    );
    return this.adopt(new Rmr(this.self, pz, scope, window as MemoryWindow));
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
    checkOptions(operation, 2, options, SRQ_OPTIONS);
    checkHandle(operation, Pz, 'PZ', options.pz, this.self);
    if (device.createSharedReceiveQueue === undefined) {
      const hint = 'ia.query().provider.srqSupported tells';
      throw notSupported(operation, 'this provider has no shared receive queues', hint);
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

const NO_WINDOW = ['DAT_INSUFFICIENT_RESOURCES', 'DAT_RESOURCE_MEMORY_REGION'] as const;
const NO_ZONE = ['DAT_INSUFFICIENT_RESOURCES', 'DAT_RESOURCE_PROTECTION_DOMAIN'] as const;
const SRQ_OPTIONS = ['pz', 'maxRecvDtos', 'maxRecvIov', 'lowWatermark'];
const NO_SRQ = ['DAT_INSUFFICIENT_RESOURCES', 'DAT_RESOURCE_SRQ'] as const;
