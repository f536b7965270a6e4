/** Opens XRC domains. */
import { argumentSubtype } from '../../errors/call-arguments.js';
import { toDatError } from '../../errors/index.js';
import type { XrcDomain as XrcHold, XrcOpenMode } from '../../spi/index.js';
import { checkFields } from '../../errors/guards.js';
import { TEXT, oneOf, optional } from '../../spi/checks/index.js';
import type { EndpointMaker } from '../endpoint/endpoint-maker.js';
import type { IaCore } from '../common/adapter-state.js';
import { notSupported, requireCapability } from '../common/unsupported.js';
import { XrcDomain } from './domain.js';

export interface XrcDomainOptions {
  /** Adapters of a device that give the same key share a domain; without one it is private. */
  readonly key?: string;
  /**
   * `create` (default): creates it if it does not exist; `exclusive`: refused if it exists;
   * `existing`: refused if it does not.
   */
  readonly mode?: XrcOpenMode;
}

export async function openXrcDomain(
  core: IaCore,
  endpoints: EndpointMaker,
  options: XrcDomainOptions = {},
): Promise<XrcDomain> {
  const operation = core.begin('ia.openXrcDomain', { key: options?.key, mode: options?.mode });
  checkFields(operation, options, DOMAIN_OPTIONS);
  const { key, mode = 'create' } = options;
  const { xrc, device } = core.context;
  if (xrc === undefined) throw notSupported(operation, `device ${device.name} has no XRC`);
  requireCapability(operation, device, 'xrc', 'XRC');
  const map = { EINVAL: ['DAT_INVALID_STATE'], ENODEV: NO_DOMAIN } as const;
  const open = async (): Promise<XrcHold> => xrc.openDomain(core, key, mode);
  const hold = await open().catch((error: unknown) => {
    throw toDatError(error, { operation, value: key, map });
  });
  try {
    core.assertOpen(operation);
  } catch (error) {
    hold.close();
    throw error;
  }
  return core.adopt(new XrcDomain(core, hold, endpoints));
}

const DOMAIN_OPTIONS = {
  key: optional(TEXT),
  mode: optional(oneOf<XrcOpenMode>(['create', 'exclusive', 'existing'])),
};
const NO_DOMAIN = ['DAT_INVALID_PARAMETER', argumentSubtype('ia.openXrcDomain', 'key')] as const;
