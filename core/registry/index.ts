/** Registry of plugins, and opening of adapters. */
export { type DatConf, type DatConfEntry, formatDatConf, parseDatConf } from './dat-conf.js';
export type { LogMethods } from './any-logger.js';
export type { ModuleKind } from '../spi/index.js';
export type { OpenIaOptions, Platform } from './opening.js';
export type { Registration } from './plugin-table.js';
export type { IaName, ProviderInfo, ProviderRelation } from './provider-info.js';
export {
  createRegistry,
  openIa,
  type OpenTarget,
  Registry,
  type RegistryOptions,
} from './registry.js';
export type { ProviderLoader } from './static-provider.js';
