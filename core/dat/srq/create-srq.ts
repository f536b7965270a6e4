/** Creates shared receive queues. */
import { spiCall } from '../../errors/index.js';
import type { SharedReceiveQueue, SharedReceiveQueueInit } from '../../spi/index.js';
import type { IaCore } from '../common/adapter-state.js';
import { checkOptions } from '../../errors/guards.js';
import { checkHandle } from '../common/handle.js';
import { notSupported, OUT_OF } from '../common/unsupported.js';
import { Pz } from '../memory/pz.js';
import { type SrqAttributes, srqAttributes, type SrqOptions } from './attributes.js';
import { type CreateSharedReceiveQueue, Srq } from './srq.js';

export function createSrq(core: IaCore, options: SrqOptions): Srq {
  const operation = core.begin('ia.createSrq', { maxRecvDtos: options?.maxRecvDtos });
  const { device } = core.context;
  checkOptions(operation, options, ['pz', 'maxRecvDtos', 'maxRecvIov', 'lowWatermark']);
  checkHandle(operation, Pz, 'PZ', options.pz, core);
  if (device.createSharedReceiveQueue === undefined) {
    const hint = 'give each endpoint receives of its own: ep.postRecv()';
    throw notSupported(operation, 'this provider has no shared receive queues', hint);
  }
  const attributes = srqAttributes(operation, options, device.attributes);
  const make = device.createSharedReceiveQueue.bind(device);
  const create = makerOfQueue(operation, options.pz, attributes, make);
  return core.adopt(new Srq(core, options.pz, attributes, create));
}

/** Creates the provider's queue with those attributes. */
export function makerOfQueue(
  operation: string,
  { pd }: Pz,
  { maxRecvDtos: maxWr, maxRecvIov: maxSge }: SrqAttributes,
  make: (init: SharedReceiveQueueInit) => SharedReceiveQueue,
): CreateSharedReceiveQueue {
  const context = { operation, value: maxWr, map: OUT_OF.sharedReceives };
  return (onEvent) => spiCall(context, () => make({ pd, maxWr, maxSge, onEvent }));
}
