/** Making shared receive queues of a domain. */
import { EvdFlags } from '../../evd/index.js';
import { checkOptions } from '../../errors/guards.js';
import { checkHandle } from '../common/handle.js';
import { Pz } from '../memory/pz.js';
import { srqAttributes } from '../srq/attributes.js';
import { makerOfQueue } from '../srq/create-srq.js';
import type { XrcDomain } from './domain.js';
import { XrcSrq, type XrcSrqOptions } from './srq.js';

export function createXrcSrq(domain: XrcDomain, options: XrcSrqOptions): XrcSrq {
  const operation = 'xrc.createSrq';
  const { core, hold } = domain;
  checkOptions(operation, 1, options, ['pz', 'maxRecvDtos', 'maxRecvIov', 'recvEvd']);
  checkHandle(operation, Pz, 'PZ', options.pz, core);
  const { pz, recvEvd } = options;
  core.checkEvdOption(operation, 'recv', recvEvd);
  const attributes = srqAttributes(operation, options, core.context.device.attributes);
  const evd = recvEvd ?? core.newEvd(attributes.maxRecvDtos, EvdFlags.DTO);
  const isPrivate = recvEvd === undefined;
  const cq = evd.feed.cq;
  const create = makerOfQueue(operation, pz, attributes, (init) =>
    hold.createSharedReceiveQueue({ ...init, cq }),
  );
  const uses: (() => void)[] = [];
  try {
    // One by one: when the second fails, the first is ended.
    uses.push(evd.feed.attach('THRESHOLD'));
    uses.push(evd.feed.reserve(1));
    return core.adopt(new XrcSrq(domain, core, pz, attributes, { evd, isPrivate, uses }, create));
  } catch (error) {
    for (const end of uses) end();
    if (isPrivate) core.freePrivateEvd(evd);
    throw error;
  }
}
