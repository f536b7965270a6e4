/** Formats and values of iSCSI, iSER and the SCSI commands of a disk. */
export * from './ahs.js';
export * from './cdb.js';
export * from './chap.js';
export * from './field-table.js';
export * from './initiator-pdus.js';
export * from './iser-header.js';
export * from './keys.js';
export * from './opcode.js';
export * from './scsi-data.js';
export * from './opcode.js';
export {
  type InitiatorPdu,
  pduLengths,
  readInitiatorPdu,
  readTargetPdu,
  serialAdd,
  serialBefore,
  serialDistance,
  takesCmdSn,
  type TargetPdu,
} from './pdu.js';
export * from './pdu-stream.js';
export * from './scsi-data.js';
export * from './sense.js';
export * from './target-pdus.js';
export * from './text.js';
export * from './values.js';
export * from './wire-error.js';
