/** The CM module as a plugin, and its class for programs that put a device together by hand. */
import { pluginOf } from '../../core/spi/index.js';
import { Cm, type CmOptions } from './cm.js';

export { Cm } from './cm.js';
export type { CmDependencies, CmOptions } from './cm.js';
export type { CmCounters } from './common/cm-counters.js';
export type { CmStateChange } from './connection/flight-notes.js';

export const cm = pluginOf<'cm', CmOptions | undefined>(Cm);
