/** The MAD module as a plugin, and its class for devices that are assembled by hand. */
import {
  CLOCK,
  DEVICE,
  LOGGER,
  RANDOM,
  SCHEDULER,
  TIMERS,
  definePlugin,
} from '../../core/spi/index.js';
import { Mad, MAD_OPTIONS, type MadOptions } from './mad.js';

export { Mad } from './mad.js';
export type { MadDependencies, MadOptions } from './mad.js';
export type { MadPortCounters } from './gsi-port.js';
export type { RmppCounters } from './rmpp-counters.js';
export type { RmppLimits } from './rmpp-limits.js';

export const mad = definePlugin(
  {
    name: 'mad',
    kind: 'mad',
    sdkVersion: '2.0',
    requires: [],
    provides: ['mad'],
    inject: {
      device: DEVICE,
      timers: TIMERS,
      clock: CLOCK,
      random: RANDOM,
      scheduler: SCHEDULER,
      logger: LOGGER,
    },
    options: MAD_OPTIONS,
  },
  ({ logger, ...deps }, options: MadOptions | undefined) =>
    new Mad({ ...deps, logger: logger.child({ module: 'mad' }) }, options),
);
