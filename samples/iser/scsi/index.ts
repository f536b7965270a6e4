/** The SCSI device server: a target with disks, for any transport of SCSI commands. */
export * from './common/command.js';
export { type Identity } from './unit/identity.js';
export { LogicalUnit, type LogicalUnitOptions } from './unit/logical-unit.js';
export { ScsiTarget, type ScsiTargetOptions } from './target.js';
