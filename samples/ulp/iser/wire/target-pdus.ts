/** Headers that a target sends (RFC 7143, section 11): 48 bytes each. */
import { bits, flag, format, octets, uint, type ViewOf } from './field-table.js';
import { BHS_BYTES, LOGIN_COMMON } from './initiator-pdus.js';
import { RESERVED_TAG, TARGET_OPCODE } from './opcode.js';

const COMMON = {
  opcode: bits(0, 0x3f),
  totalAhsLength: uint(4, 1),
  dataSegmentLength: uint(5, 3),
  initiatorTaskTag: uint(16, 4),
} as const;

/** Numbers of a target's PDUs. */
const NUMBERS = { statSn: uint(24, 4), expCmdSn: uint(28, 4), maxCmdSn: uint(32, 4) } as const;
const LUN = { lun: octets(8, 8) } as const;
const FINAL = { final: flag(1, 0x80) } as const;

export const nopIn = format(
  'NOP-In',
  BHS_BYTES,
  { ...COMMON, ...FINAL, ...LUN, targetTransferTag: uint(20, 4), ...NUMBERS },
  {
    opcode: TARGET_OPCODE.NOP_IN,
    final: true,
    initiatorTaskTag: RESERVED_TAG,
    targetTransferTag: RESERVED_TAG,
  },
);
export type NopIn = ViewOf<typeof nopIn>;

export const scsiResponse = format(
  'SCSI Response',
  BHS_BYTES,
  {
    ...COMMON,
    ...FINAL,
    bidirectionalReadOverflow: flag(1, 0x10),
    bidirectionalReadUnderflow: flag(1, 0x08),
    /** The command would have moved `residualCount` bytes more than expected. */
    overflow: flag(1, 0x04),
    /** It has moved `residualCount` bytes less. */
    underflow: flag(1, 0x02),
    /** `SCSI_RESPONSE_CODE`. */
    response: uint(2, 1),
    /** `SCSI_STATUS`. */
    status: uint(3, 1),
    snackTag: uint(20, 4),
    ...NUMBERS,
    expDataSn: uint(36, 4),
    bidirectionalReadResidualCount: uint(40, 4),
    residualCount: uint(44, 4),
  },
  { opcode: TARGET_OPCODE.SCSI_RESPONSE, final: true },
);
export type ScsiResponse = ViewOf<typeof scsiResponse>;

export const taskManagementResponse = format(
  'Task Management Function Response',
  BHS_BYTES,
  {
    ...COMMON,
    ...FINAL,
    /** `TASK_RESPONSE`. */
    response: uint(2, 1),
    ...NUMBERS,
  },
  { opcode: TARGET_OPCODE.TASK_MANAGEMENT_RESPONSE, final: true },
);

export const loginResponse = format(
  'Login Response',
  BHS_BYTES,
  {
    ...LOGIN_COMMON,
    versionMax: uint(2, 1),
    versionActive: uint(3, 1),
    ...NUMBERS,
    /** `LOGIN_STATUS`: class and detail. */
    status: uint(36, 2),
  },
  { opcode: TARGET_OPCODE.LOGIN_RESPONSE },
);
export type LoginResponse = ViewOf<typeof loginResponse>;

export const textResponse = format(
  'Text Response',
  BHS_BYTES,
  {
    ...COMMON,
    ...FINAL,
    continue: flag(1, 0x40),
    ...LUN,
    /** Reserved when nothing more follows. */
    targetTransferTag: uint(20, 4),
    ...NUMBERS,
  },
  { opcode: TARGET_OPCODE.TEXT_RESPONSE, targetTransferTag: RESERVED_TAG },
);

export const dataIn = format(
  'Data-In',
  BHS_BYTES,
  {
    ...COMMON,
    ...FINAL,
    acknowledge: flag(1, 0x40),
    overflow: flag(1, 0x04),
    underflow: flag(1, 0x02),
    /** `statSn`, `status` and the residual are those of the command, which ends here. */
    hasStatus: flag(1, 0x01),
    status: uint(3, 1),
    ...LUN,
    targetTransferTag: uint(20, 4),
    ...NUMBERS,
    dataSn: uint(36, 4),
    /** In bytes, from the start of the command's data. */
    bufferOffset: uint(40, 4),
    residualCount: uint(44, 4),
  },
  { opcode: TARGET_OPCODE.DATA_IN, targetTransferTag: RESERVED_TAG },
);
export type DataIn = ViewOf<typeof dataIn>;

export const r2t = format(
  'R2T',
  BHS_BYTES,
  {
    ...COMMON,
    ...FINAL,
    ...LUN,
    targetTransferTag: uint(20, 4),
    ...NUMBERS,
    r2tSn: uint(36, 4),
    /** In bytes, from the start of the command's data. */
    bufferOffset: uint(40, 4),
    /** In bytes: 1 to MaxBurstLength. */
    desiredDataTransferLength: uint(44, 4),
  },
  { opcode: TARGET_OPCODE.R2T, final: true },
);
export type R2t = ViewOf<typeof r2t>;

export const asyncMessage = format(
  'Asynchronous Message',
  BHS_BYTES,
  {
    ...COMMON,
    ...FINAL,
    ...LUN,
    ...NUMBERS,
    /** `ASYNC_EVENT`. */
    event: uint(36, 1),
    vendorCode: uint(37, 1),
    /** Their meaning is the event's; of a logout request the third is the time in seconds. */
    parameter1: uint(38, 2),
    parameter2: uint(40, 2),
    parameter3: uint(42, 2),
  },
  { opcode: TARGET_OPCODE.ASYNC_MESSAGE, final: true, initiatorTaskTag: RESERVED_TAG },
);
export type AsyncMessage = ViewOf<typeof asyncMessage>;

export const logoutResponse = format(
  'Logout Response',
  BHS_BYTES,
  {
    ...COMMON,
    ...FINAL,
    /** `LOGOUT_RESPONSE`. */
    response: uint(2, 1),
    ...NUMBERS,
    /** In seconds. */
    time2Wait: uint(40, 2),
    time2Retain: uint(42, 2),
  },
  { opcode: TARGET_OPCODE.LOGOUT_RESPONSE, final: true },
);

/** Its data segment is the header that is rejected. */
export const reject = format(
  'Reject',
  BHS_BYTES,
  {
    ...COMMON,
    ...FINAL,
    /** `REJECT_REASON`. */
    reason: uint(2, 1),
    ...NUMBERS,
    /** DataSN or R2TSN, where the reason has one. */
    dataSn: uint(36, 4),
  },
  { opcode: TARGET_OPCODE.REJECT, final: true, initiatorTaskTag: RESERVED_TAG },
);
export type Reject = ViewOf<typeof reject>;
