/**
 * dapl: RDMA for Node.js, the DAT way. The package's main entry: the consumer API of core, and what
 * core may not have of its own: files, the environment, and the import of provider packages.
 */
export * from '../../core/index.js';
export { type DatConfFile, readDatConf } from './dat-conf-file.js';
export type { PackageOptions } from './package-provider.js';
export { localAddressToward } from './local-address.js';
export { loadRegistry, openIa, systemRegistry } from './system-registry.js';
