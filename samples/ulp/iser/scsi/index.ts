/** The SCSI device server: a target with disks, for any transport of SCSI commands. */
export * from './common/command.js';
export { LogicalUnit } from './unit/logical-unit.js';
export { ScsiTarget } from './target.js';
