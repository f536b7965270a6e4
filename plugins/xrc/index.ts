/** The XRC module as a plugin, and its class for devices that are assembled by hand. */
import { DEVICE, LOGGER, definePlugin } from '../../core/spi/index.js';
import { Xrc } from './xrc.js';

export { Xrc } from './xrc.js';
export type { XrcDependencies } from './xrc.js';
export { TARGET_ATTRIBUTES, TARGET_CAPABILITIES } from './target-attributes.js';

export const xrc = definePlugin(
  {
    name: 'xrc',
    kind: 'xrc',
    sdkVersion: '2.0',
    requires: [],
    provides: ['xrc'],
    inject: { device: DEVICE, logger: LOGGER },
    options: {},
  },
  ({ device, logger }, _options: Readonly<Record<string, never>> | undefined) =>
    new Xrc({ device, logger: logger.child({ module: 'xrc' }) }),
);
