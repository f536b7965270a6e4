/**
 * dapl: RDMA for Node.js, the DAT way. The package's main entry: the consumer API of core, with the
 * parts that need files, the environment, or imports of provider packages.
 */
export * from '../../core/index.js';
export { type DatConfFile, readDatConf } from './dat-conf-file.js';
export { createLogger, fromWinston, type LoggerOptions, type LogLevel } from './log/winston.js';
export type { PackageOptions } from './package-provider.js';
export { localAddressToward } from './local-address.js';
export { createRegistry, loadRegistry, openIa, systemRegistry } from './system-registry.js';
