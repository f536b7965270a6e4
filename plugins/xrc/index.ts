/** The XRC module as a plugin, and its class for devices that are assembled by hand. */
import { pluginOf } from '../../core/spi/index.js';
import { Xrc } from './xrc.js';

export { Xrc } from './xrc.js';
export type { XrcDependencies } from './xrc.js';
export { TARGET_ATTRIBUTES, TARGET_CAPABILITIES } from './target-attributes.js';

export const xrc = pluginOf<'xrc', Readonly<Record<string, never>> | undefined>(Xrc);
