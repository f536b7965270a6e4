/** Making shared receive queues. */
import { spiCall } from '../../errors/index.js';
import { checkOptions } from '../../errors/guards.js';
import { checkHandle } from '../common/handle.js';
import type { IaCore } from '../ia/core.js';
import { notSupported } from '../memory/lmr-options.js';
import { Pz } from '../memory/pz.js';
import { srqAttributes, type SrqOptions } from './attributes.js';
import { Srq } from './srq.js';

export function createSrq(core: IaCore, options: SrqOptions): Srq {
  const operation = 'ia.createSrq';
  core.begin(operation, { maxRecvDtos: options?.maxRecvDtos });
  const { device } = core.context;
  checkOptions(operation, 2, options, SRQ_OPTIONS);
  checkHandle(operation, Pz, 'PZ', options.pz, core);
  if (device.createSharedReceiveQueue === undefined) {
    const hint = 'ia.query().provider.srqSupported tells';
    throw notSupported(operation, 'this provider has no shared receive queues', hint);
  }
  const attributes = srqAttributes(operation, options, device.attributes);
  const { maxRecvDtos: maxWr, maxRecvIov: maxSge } = attributes;
  const context = { operation, value: maxWr, map: { ENOMEM: NO_SRQ } };
  const create = device.createSharedReceiveQueue.bind(device);
  const { pd } = options.pz;
  const srq = new Srq(core, options.pz, attributes, (onEvent) =>
    spiCall(context, () => create({ pd, maxWr, maxSge, onEvent })),
  );
  return core.adopt(srq);
}

const SRQ_OPTIONS = ['pz', 'maxRecvDtos', 'maxRecvIov', 'lowWatermark'];
const NO_SRQ = ['DAT_INSUFFICIENT_RESOURCES', 'DAT_RESOURCE_SRQ'] as const;
