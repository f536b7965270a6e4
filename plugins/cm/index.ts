/** The CM module as a plugin, and its class for programs that put a device together by hand. */
import {
  CLOCK,
  DEVICE,
  LOGGER,
  MAD,
  RANDOM,
  SCHEDULER,
  TIMERS,
  definePlugin,
} from '../../core/spi/index.js';
import { Cm, CM_OPTIONS, type CmOptions } from './cm.js';

export { Cm } from './cm.js';
export type { CmDependencies, CmOptions } from './cm.js';
export type { CmCounters } from './common/cm-counters.js';

export const cm = definePlugin(
  {
    name: 'cm',
    kind: 'cm',
    sdkVersion: '2.0',
    requires: [],
    provides: ['cm'],
    inject: {
      mad: MAD,
      device: DEVICE,
      timers: TIMERS,
      clock: CLOCK,
      random: RANDOM,
      scheduler: SCHEDULER,
      logger: LOGGER,
    },
    options: CM_OPTIONS,
  },
  ({ logger, ...deps }, options: CmOptions | undefined) =>
    new Cm({ ...deps, logger: logger.child({ module: 'cm' }) }, options),
);
