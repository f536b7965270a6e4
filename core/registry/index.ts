/** Registry of plugins, and opening. */
export { type ModuleKind } from './device-table.js';
export {
  createRegistry,
  openIa,
  type OpenIaOptions,
  Registry,
  type RegistryOptions,
} from './registry.js';
