/** Opening XRC domains, and making what a consumer has in them. */
import { cqOf } from '../common/private-evd.js';
import { DatError, spiCall } from '../../errors/index.js';
import { EvdFlags } from '../../evd/index.js';
import type { XrcDomain as XrcHold, XrcModule, XrcOpenMode } from '../../spi/index.js';
import { checkFields, checkOptions } from '../../errors/guards.js';
import { oneOf, optional, TEXT } from '../../spi/checks/index.js';
import { checkHandle } from '../common/handle.js';
import type { EndpointMaker } from '../endpoint/endpoint-maker.js';
import type { IaCore } from '../ia/core.js';
import { Pz } from '../memory/pz.js';
import { srqAttributes } from '../srq/attributes.js';
import { XrcDomain, type XrcInitiatorOptions } from './domain.js';
import { XrcInitiator } from './initiator.js';
import { XrcSrq, type XrcSrqOptions } from './srq.js';

export interface XrcDomainOptions {
  /** Adapters of a device that give the same key share a domain; without one it is private. */
  readonly key?: string;
  /**
   * `create` (default): made if it is not there; `exclusive`: refused if it is there; `existing`:
   * refused if it is not.
   */
  readonly mode?: XrcOpenMode;
}

export function openXrcDomain(
  core: IaCore,
  endpoints: EndpointMaker,
  options: XrcDomainOptions = {},
): XrcDomain {
  const operation = 'ia.openXrcDomain';
  core.begin(operation, { key: options?.key, mode: options?.mode });
  checkFields(operation, 1, options, DOMAIN_OPTIONS);
  const { key, mode = 'create' } = options;
  const module = xrcModule(core, operation);
  const map = { EINVAL: ['DAT_INVALID_STATE'], ENODEV: NO_DOMAIN } as const;
  const hold = spiCall({ operation, value: key, map }, () => module.openDomain(core, key, mode));
  return core.adopt(
    new XrcDomain(core, hold, {
      makeSrq: (domain, own, srqOptions) => createXrcSrq(core, domain, own, srqOptions),
      makeInitiator: (domain, own, epOptions) =>
        createInitiator(core, endpoints, domain, own, epOptions),
    }),
  );
}

function xrcModule(core: IaCore, operation: string): XrcModule {
  const { xrc, device } = core.context;
  if (xrc !== undefined && device.capabilities.has('xrc')) return xrc;
  throw new DatError('DAT_MODEL_NOT_SUPPORTED', {
    operation,
    message: `device ${device.name} has no XRC`,
    value: device.name,
  });
}

function createXrcSrq(
  core: IaCore,
  domain: XrcDomain,
  hold: XrcHold,
  options: XrcSrqOptions,
): XrcSrq {
  const operation = 'xrc.createSrq';
  checkOptions(operation, 1, options, ['pz', 'maxRecvDtos', 'maxRecvIov', 'recvEvd']);
  checkHandle(operation, Pz, 'PZ', options.pz, core);
  const { pz, recvEvd } = options;
  core.checkEvdOption(operation, 'recv', recvEvd);
  const attributes = srqAttributes(operation, options, core.context.device.attributes);
  const { maxRecvDtos: maxWr, maxRecvIov: maxSge } = attributes;
  const evd = recvEvd ?? core.newEvd(maxWr, EvdFlags.DTO);
  const isPrivate = recvEvd === undefined;
  const cq = cqOf(evd);
  const context = { operation, value: maxWr, map: { ENOMEM: NO_SRQ } };
  const uses: (() => void)[] = [];
  try {
    // One by one: when the second fails, the first is ended.
    uses.push(evd.attach('THRESHOLD'));
    uses.push(evd.reserve(1));
    return core.adopt(
      new XrcSrq(domain, core, pz, attributes, { evd, isPrivate, uses }, (onEvent) =>
        spiCall(context, () =>
          hold.createSharedReceiveQueue({ pd: pz.pd, cq, maxWr, maxSge, onEvent }),
        ),
      ),
    );
  } catch (error) {
    for (const end of uses) end();
    if (isPrivate) core.freePrivateEvd(evd);
    throw error;
  }
}

function createInitiator(
  core: IaCore,
  endpoints: EndpointMaker,
  domain: XrcDomain,
  hold: XrcHold,
  options: XrcInitiatorOptions,
): XrcInitiator {
  const operation = 'xrc.createInitiator';
  checkOptions(operation, 1, options, ['pz', 'requestEvd', 'connectEvd', 'attributes']);
  const { requestEvd } = options;
  // What it never receives completes where its requests do.
  const given = { ...options, ...(requestEvd && { recvEvd: requestEvd }) };
  return endpoints.build(
    operation,
    given,
    'UNCONNECTED',
    (init) => new XrcInitiator(core, domain, { ...init, xrc: hold }),
  );
}

const DOMAIN_OPTIONS = {
  key: optional(TEXT),
  mode: optional(oneOf<XrcOpenMode>(['create', 'exclusive', 'existing'])),
};
const NO_DOMAIN = ['DAT_INVALID_PARAMETER', 'DAT_INVALID_ARG1'] as const;
const NO_SRQ = ['DAT_INSUFFICIENT_RESOURCES', 'DAT_RESOURCE_SRQ'] as const;
