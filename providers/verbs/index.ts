/**
 * The verbs provider (`dapl/providers/verbs`): any RDMA device of Linux (mlx5, irdma, bnxt_re, the
 * kernel's rxe and siw) through libibverbs, librdmacm and the kernel's management datagrams. They
 * are looked up when it is first opened: it installs and imports on a machine without them.
 */
import {
  CM,
  type DatProviderInit,
  definePlugin,
  LOGGER,
  MAD,
  type ProviderInstance,
  token,
  XRC,
} from '../../core/spi/index.js';
import { Xrc } from '../../plugins/xrc/index.js';
import { bindNode } from '../host/index.js';
import { VerbsCm } from './cm/cm.js';
import { UMAD_PATH, umadPathOf } from './mad/device.js';
import { Umad } from './mad/mad.js';
import type { VerbsNode } from './node.js';
import { VERBS_CAPABILITIES } from './objects/device-attributes.js';
import { openNode } from './open.js';
import { checkOptions, OPTIONS, type VerbsOptions } from './opening/options.js';
import { optionsOf } from './opening/provider-init.js';
import { OWN_DEVICE } from './objects/open-device.js';
import { ADDON } from './opening/libraries.js';

export type { DeviceChoice } from './opening/choose-device.js';
export { inspectVerbs, type InspectedDevice, type VerbsInspection } from './opening/inspect.js';
export type { LibraryPaths, VerbsOptions } from './opening/options.js';
export type {
  GidEntry,
  GidType,
  LinkLayer,
  NetworkInterface,
  PortState,
  RdmaDevice,
  RdmaPort,
} from './system/system.js';

const NODE = token<VerbsNode>('verbs/node');

/**
 * Without options: the first device that can be used. Options that it does not take are refused
 * when it is called. Opening fails with DatError: DAT_PROVIDER_NOT_FOUND (no library, no device),
 * DAT_PRIVILEGES_VIOLATION (files of /dev/infiniband), DAT_INVALID_ADDRESS (an address that no
 * device serves, no route, port down) or DAT_INVALID_PARAMETER (a port or GID that is not there),
 * each in a sentence that names the remedy (docs/verbs.md).
 */
export const verbs = definePlugin(
  {
    name: 'verbs',
    kind: 'provider',
    sdkVersion: '2.0',
    requires: ['mad', 'cm', 'xrc'],
    provides: [...VERBS_CAPABILITIES, 'mad', 'cm'],
    options: OPTIONS,
  },
  (given: VerbsOptions | undefined): ProviderInstance => {
    const options = checkOptions(given);
    return {
      deviceKey: deviceKeyOf(options),
      async open(registrar, deviceLogger): Promise<void> {
        const logger = deviceLogger.child({ provider: 'verbs' });
        const { node, addon, choice } = await openNode(options, logger);
        registrar.bind(LOGGER, () => logger);
        registrar.bind(NODE, () => node);
        bindNode(registrar, NODE, node.clock);
        registrar.bind(ADDON, () => addon);
        registrar.bind(OWN_DEVICE, () => node.device);
        registrar.bind(UMAD_PATH, () => () => umadPathOf(choice.device, choice.port));
        registrar.bind(MAD, Umad);
        registrar.bind(CM, VerbsCm);
        registrar.bind(XRC, Xrc);
      },
    };
  },
);

/** Opened by a line of dat.conf (docs/registry.md). */
export const datProviderInit: DatProviderInit = (_info, iaParams) => verbs(optionsOf(iaParams));

/** The same words share a device; a name and an address of it open it twice, which verbs allow. */
function deviceKeyOf({ device, address, port, gidIndex, libraries }: VerbsOptions): string {
  const words = [device ?? address ?? 'any', port, gidIndex, libraries?.verbs];
  return `verbs:${words.map((word) => word ?? '').join(':')}`;
}
