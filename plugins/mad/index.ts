/** The MAD module as a plugin, and its class for devices that are put together by hand. */
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
// For a module whose agents are the operating system's.
export { Agent } from './agent.js';
export { MethodTable } from './method-table.js';
export type { MadPort, PortAddress, WorkRequest } from './port.js';
export { newRmppCounters } from './rmpp-counters.js';
export type { RmppCounters } from './rmpp-counters.js';
export { DEFAULT_RMPP_LIMITS, RmppAllowance } from './rmpp-limits.js';
export type { RmppLimits } from './rmpp-limits.js';
export { checkSend } from './send-checks.js';

export const mad = definePlugin(
  {
    name: 'mad',
    kind: 'mad',
    sdkVersion: '1.0',
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
