/** Headers that an initiator sends (RFC 7143, section 11): 48 bytes each. */
import { bits, flag, format, octets, uint, type ViewOf } from './field-table.js';
import { INITIATOR_OPCODE, RESERVED_TAG } from './opcode.js';

export const BHS_BYTES = 48;

/** Fields of every header. */
const COMMON = {
  /** Bit 6 of requests: delivered at once, whatever CmdSN is expected. */
  immediate: flag(0, 0x40),
  opcode: bits(0, 0x3f),
  /** In units of 4 bytes. */
  totalAhsLength: uint(4, 1),
  /** In bytes, without padding. */
  dataSegmentLength: uint(5, 3),
  initiatorTaskTag: uint(16, 4),
} as const;

/** Numbers of an initiator's requests. */
const NUMBERS = { cmdSn: uint(24, 4), expStatSn: uint(28, 4) } as const;
const LUN = { lun: octets(8, 8) } as const;
const FINAL = { final: flag(1, 0x80) } as const;

/** Any header, before its opcode has been looked at. */
export const basicHeader = format('BHS', BHS_BYTES, { ...COMMON, ...FINAL, ...LUN });
export type BasicHeader = ViewOf<typeof basicHeader>;

export const nopOut = format(
  'NOP-Out',
  BHS_BYTES,
  { ...COMMON, ...FINAL, ...LUN, targetTransferTag: uint(20, 4), ...NUMBERS },
  { opcode: INITIATOR_OPCODE.NOP_OUT, final: true, targetTransferTag: RESERVED_TAG },
);

export const scsiCommand = format(
  'SCSI Command',
  BHS_BYTES,
  {
    ...COMMON,
    /** No unsolicited Data-Out follows. */
    ...FINAL,
    read: flag(1, 0x40),
    write: flag(1, 0x20),
    /** `TASK_ATTRIBUTE`. */
    attribute: bits(1, 0x07),
    ...LUN,
    /** In bytes; of the write where a command both writes and reads. */
    expectedDataTransferLength: uint(20, 4),
    ...NUMBERS,
    /** The first 16 bytes; what is longer is in an additional header. */
    cdb: octets(32, 16),
  },
  { opcode: INITIATOR_OPCODE.SCSI_COMMAND },
);
export type ScsiCommand = ViewOf<typeof scsiCommand>;

export const taskManagementRequest = format(
  'Task Management Function Request',
  BHS_BYTES,
  {
    ...COMMON,
    ...FINAL,
    /** `TASK_FUNCTION`. */
    function: bits(1, 0x7f),
    ...LUN,
    referencedTaskTag: uint(20, 4),
    ...NUMBERS,
    /** CmdSN of the task that is referred to. */
    refCmdSn: uint(32, 4),
    expDataSn: uint(36, 4),
  },
  {
    opcode: INITIATOR_OPCODE.TASK_MANAGEMENT_REQUEST,
    final: true,
    referencedTaskTag: RESERVED_TAG,
  },
);
export type TaskManagementRequest = ViewOf<typeof taskManagementRequest>;

/** Fields that Login Request and Login Response share. */
export const LOGIN_COMMON = {
  ...COMMON,
  transit: flag(1, 0x80),
  /** More text follows in the next PDU. */
  continue: flag(1, 0x40),
  /** `LOGIN_STAGE`. */
  currentStage: bits(1, 0x0c),
  nextStage: bits(1, 0x03),
  isid: octets(8, 6),
  /** 0 until the target has given the session a handle. */
  tsih: uint(14, 2),
} as const;

export const loginRequest = format(
  'Login Request',
  BHS_BYTES,
  {
    ...LOGIN_COMMON,
    versionMax: uint(2, 1),
    versionMin: uint(3, 1),
    cid: uint(20, 2),
    ...NUMBERS,
  },
  { opcode: INITIATOR_OPCODE.LOGIN_REQUEST, immediate: true },
);
export type LoginRequest = ViewOf<typeof loginRequest>;

export const textRequest = format(
  'Text Request',
  BHS_BYTES,
  {
    ...COMMON,
    ...FINAL,
    continue: flag(1, 0x40),
    ...LUN,
    targetTransferTag: uint(20, 4),
    ...NUMBERS,
  },
  { opcode: INITIATOR_OPCODE.TEXT_REQUEST, final: true, targetTransferTag: RESERVED_TAG },
);
export type TextRequest = ViewOf<typeof textRequest>;

export const dataOut = format(
  'Data-Out',
  BHS_BYTES,
  {
    ...COMMON,
    ...FINAL,
    ...LUN,
    /** Tag of the R2T that is answered; reserved if the data is unsolicited. */
    targetTransferTag: uint(20, 4),
    expStatSn: uint(28, 4),
    dataSn: uint(36, 4),
    /** In bytes, from the start of the command's data. */
    bufferOffset: uint(40, 4),
  },
  { opcode: INITIATOR_OPCODE.DATA_OUT, targetTransferTag: RESERVED_TAG },
);

export const logoutRequest = format(
  'Logout Request',
  BHS_BYTES,
  {
    ...COMMON,
    ...FINAL,
    /** `LOGOUT_REASON`. */
    reason: bits(1, 0x7f),
    cid: uint(20, 2),
    ...NUMBERS,
  },
  { opcode: INITIATOR_OPCODE.LOGOUT_REQUEST, final: true },
);

/** Asks for PDUs again; error recovery level 0 has none, and rejects it. */
export const snackRequest = format(
  'SNACK Request',
  BHS_BYTES,
  {
    ...COMMON,
    ...FINAL,
    type: bits(1, 0x0f),
    ...LUN,
    targetTransferTag: uint(20, 4),
    expStatSn: uint(28, 4),
    beginRun: uint(40, 4),
    runLength: uint(44, 4),
  },
  { opcode: INITIATOR_OPCODE.SNACK_REQUEST, final: true },
);
