/** The MAD module as a plugin, and its class for devices that are assembled by hand. */
import { pluginOf } from '../../core/spi/index.js';
import { Mad, type MadOptions } from './mad.js';

export { Mad } from './mad.js';
export type { MadDependencies, MadOptions } from './mad.js';
export type { MadPortCounters } from './gsi-port.js';
export type { RmppCounters } from './rmpp-counters.js';
export type { RmppLimits } from './rmpp-limits.js';

export const mad = pluginOf<'mad', MadOptions | undefined>(Mad);
