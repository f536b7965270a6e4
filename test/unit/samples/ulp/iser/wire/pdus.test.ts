import assert from 'node:assert/strict';

import * as wire from '../../../../../../samples/ulp/iser/wire/index.js';
import { hex, toHex } from './bytes.js';

/** One row: what a PDU's fields are, and the bytes they make. */
interface Golden {
  readonly what: string;
  readonly made: { readonly bytes: Uint8Array };
  readonly bytes: string;
}

const LUN_1 = wire.emitLun(1);
const SNS = { statSn: 0xb62ed241, expCmdSn: 1, maxCmdSn: 0x40 };

/** From the RFC's figures, by hand, but for those marked as captured. */
const FROM_INITIATOR: readonly Golden[] = [
  {
    what: 'NOP-Out (captured)',
    made: wire.nopOut.make({
      immediate: true,
      initiatorTaskTag: 0x46000000,
      cmdSn: 0x45,
      expStatSn: 0xb62ed286,
    }),
    bytes: '40800000 00000000 00*8 46000000 ffffffff 00000045 b62ed286 00*16',
  },
  {
    what: 'SCSI Command: INQUIRY (captured)',
    made: wire.scsiCommand.make({
      final: true,
      read: true,
      attribute: wire.TASK_ATTRIBUTE.SIMPLE,
      initiatorTaskTag: 0x01000000,
      expectedDataTransferLength: 36,
      cmdSn: 0,
      expStatSn: 0xb62ed241,
      cdb: wire.inquiry.make({ allocationLength: 36 }).bytes,
    }),
    bytes: '01c10000 00000000 00*8 01000000 00000024 00000000 b62ed241 120000002400 00*10',
  },
  {
    what: 'SCSI Command: WRITE(10) with immediate data (captured)',
    made: wire.scsiCommand.make({
      final: true,
      write: true,
      attribute: wire.TASK_ATTRIBUTE.SIMPLE,
      dataSegmentLength: 0x2000,
      initiatorTaskTag: 0x1d000000,
      expectedDataTransferLength: 0x80000,
      cmdSn: 0x8f,
      expStatSn: 0xb62ed2dc,
      cdb: hex('2a000000038000040000'),
    }),
    bytes: '01a10000 00002000 00*8 1d000000 00080000 0000008f b62ed2dc 2a000000 03800004 00 00*7',
  },
  {
    what: 'Task Management Function Request',
    made: wire.taskManagementRequest.make({
      immediate: true,
      function: wire.TASK_FUNCTION.ABORT_TASK,
      lun: LUN_1,
      initiatorTaskTag: 7,
      referencedTaskTag: 6,
      cmdSn: 9,
      expStatSn: 10,
      refCmdSn: 8,
    }),
    bytes: '42810000 00000000 0001000000000000 00000007 00000006 00000009 0000000a 00000008 00*12',
  },
  {
    what: 'Login Request (captured)',
    made: wire.loginRequest.make({
      transit: true,
      currentStage: wire.LOGIN_STAGE.OPERATIONAL,
      nextStage: wire.LOGIN_STAGE.FULL_FEATURE,
      dataSegmentLength: 0xf1,
      isid: hex('00023d000001'),
      cmdSn: 1,
    }),
    bytes: '43870000 000000f1 00023d00 00010000 00000000 00000000 00000001 00*20',
  },
  {
    what: 'Text Request',
    made: wire.textRequest.make({ dataSegmentLength: 16, initiatorTaskTag: 2, cmdSn: 3 }),
    bytes: '04800000 00000010 00*8 00000002 ffffffff 00000003 00*20',
  },
  {
    what: 'Data-Out',
    made: wire.dataOut.make({
      final: true,
      dataSegmentLength: 512,
      initiatorTaskTag: 5,
      targetTransferTag: 0x11,
      expStatSn: 6,
      dataSn: 1,
      bufferOffset: 0x200,
    }),
    bytes: '05800000 00000200 00*8 00000005 00000011 00000000 00000006 00*4 00000001 00000200 00*4',
  },
  {
    what: 'Logout Request',
    made: wire.logoutRequest.make({
      immediate: true,
      reason: wire.LOGOUT_REASON.CLOSE_CONNECTION,
      initiatorTaskTag: 4,
      cid: 2,
      cmdSn: 5,
      expStatSn: 6,
    }),
    bytes: '46810000 00000000 00*8 00000004 00020000 00000005 00000006 00*16',
  },
  {
    what: 'SNACK Request',
    made: wire.snackRequest.make({ type: 1, initiatorTaskTag: 0xffffffff, beginRun: 2 }),
    bytes: '10810000 00000000 00*8 ffffffff 00*20 00000002 00000000',
  },
];

const FROM_TARGET: readonly Golden[] = [
  {
    what: 'NOP-In (captured)',
    made: wire.nopIn.make({
      lun: hex('ff*8'),
      initiatorTaskTag: 0x46000000,
      statSn: 0xb62ed286,
      expCmdSn: 0x45,
      maxCmdSn: 0x84,
    }),
    bytes: '20800000 00000000 ff*8 46000000 ffffffff b62ed286 00000045 00000084 00*12',
  },
  {
    what: 'SCSI Response (captured)',
    made: wire.scsiResponse.make({ initiatorTaskTag: 0x01000000, ...SNS }),
    bytes: '21800000 00000000 00*8 01000000 00000000 b62ed241 00000001 00000040 00*12',
  },
  {
    what: 'SCSI Response with sense and a residual',
    made: wire.scsiResponse.make({
      underflow: true,
      status: wire.SCSI_STATUS.CHECK_CONDITION,
      dataSegmentLength: 0x62,
      initiatorTaskTag: 0x0a000000,
      ...SNS,
      residualCount: 0x200,
    }),
    bytes: '21820002 00000062 00*8 0a000000 00000000 b62ed241 00000001 00000040 00*8 00000200',
  },
  {
    what: 'Task Management Function Response',
    made: wire.taskManagementResponse.make({ response: 1, initiatorTaskTag: 7, ...SNS }),
    bytes: '22800100 00000000 00*8 00000007 00*4 b62ed241 00000001 00000040 00*12',
  },
  {
    what: 'Login Response (captured)',
    made: wire.loginResponse.make({
      transit: true,
      currentStage: wire.LOGIN_STAGE.OPERATIONAL,
      nextStage: wire.LOGIN_STAGE.FULL_FEATURE,
      dataSegmentLength: 0xc5,
      isid: hex('00023d000001'),
      tsih: 1,
      statSn: 0x2ea607fb,
      expCmdSn: 1,
      maxCmdSn: 1,
    }),
    bytes: '23870000 000000c5 00023d00 00010001 00000000 00000000 2ea607fb 00000001 00000001 00*12',
  },
  {
    what: 'Login Response of a refusal',
    made: wire.loginResponse.make({ status: wire.LOGIN_STATUS.AUTHENTICATION_FAILURE }),
    bytes: '23000000 00*32 0201 00*10',
  },
  {
    what: 'Text Response',
    made: wire.textResponse.make({ continue: true, final: false, targetTransferTag: 9, ...SNS }),
    bytes: '24400000 00000000 00*8 00000000 00000009 b62ed241 00000001 00000040 00*12',
  },
  {
    what: 'Data-In with status',
    made: wire.dataIn.make({
      final: true,
      hasStatus: true,
      dataSegmentLength: 512,
      initiatorTaskTag: 3,
      ...SNS,
      dataSn: 2,
      bufferOffset: 0x400,
    }),
    bytes:
      '25810000 00000200 00*8 00000003 ffffffff b62ed241 00000001 00000040 00000002 00000400 00*4',
  },
  {
    what: 'Logout Response',
    made: wire.logoutResponse.make({ initiatorTaskTag: 4, ...SNS, time2Wait: 2, time2Retain: 3 }),
    bytes: '26800000 00000000 00*8 00000004 00*4 b62ed241 00000001 00000040 00*4 00020003 00*4',
  },
  {
    what: 'R2T',
    made: wire.r2t.make({
      initiatorTaskTag: 3,
      targetTransferTag: 0x11,
      ...SNS,
      r2tSn: 1,
      bufferOffset: 0x2000,
      desiredDataTransferLength: 0x1000,
    }),
    bytes: '31800000 00*12 00000003 00000011 b62ed241 00000001 00000040 00000001 00002000 00001000',
  },
  {
    what: 'Asynchronous Message',
    made: wire.asyncMessage.make({
      event: wire.ASYNC_EVENT.LOGOUT_REQUEST,
      parameter3: 5,
      ...SNS,
    }),
    bytes:
      '32800000 00000000 00*8 ffffffff 00*4 b62ed241 00000001 00000040 01 00 0000 0000 0005 00*4',
  },
  {
    what: 'Reject',
    made: wire.reject.make({
      reason: wire.REJECT_REASON.INVALID_PDU_FIELD,
      dataSegmentLength: 48,
      ...SNS,
    }),
    bytes: '3f800900 00000030 00*8 ffffffff 00*4 b62ed241 00000001 00000040 00*12',
  },
];

describe('iSCSI PDUs', () => {
  for (const [sender, goldens, read] of [
    ['an initiator', FROM_INITIATOR, wire.readInitiatorPdu],
    ['a target', FROM_TARGET, wire.readTargetPdu],
  ] as const) {
    for (const { what, made, bytes } of goldens) {
      it(`${what} of ${sender} is these bytes`, () => {
        assert.equal(made.bytes.length, 48);
        assert.equal(toHex(made.bytes), toHex(hex(bytes)));
      });

      it(`${what} is read as it was made`, () => {
        const dataBytes = wire.pduLengths(made.bytes).dataBytes;
        const whole = new Uint8Array(48 + dataBytes).fill(0xa5);
        whole.set(made.bytes);
        const pdu = read(whole);
        assert.equal(pdu.data.length, dataBytes);
        // Written again field by field, the header is the same.
        const again = Object.entries(FORMATS).find(([name]) => name === pdu.type)![1];
        const format = again as unknown as wire.Format<Record<string, wire.Field<unknown>>>;
        const record = format.record(format.view(whole));
        assert.equal(toHex(format.make(record).bytes), toHex(hex(bytes)));
      });
    }
  }

  it('an opcode of the other side is refused by its number', () => {
    assert.throws(() => wire.readTargetPdu(hex('01 00*47')), {
      name: 'WireError',
      fault: 'opcode',
      message: 'opcode is "0x1", must be one of a target',
    });
    assert.throws(() => wire.readInitiatorPdu(hex('21 00*47')), { fault: 'opcode' });
    assert.throws(() => wire.readInitiatorPdu(hex('07 00*47')), { fault: 'opcode' });
  });

  it('a PDU that is cut off is refused with both lengths', () => {
    assert.throws(() => wire.readInitiatorPdu(hex('00*47')), {
      fault: 'length',
      message: 'PDU length in bytes is 47, must be at least 48',
    });
    assert.throws(() => wire.readInitiatorPdu(hex('00800000 00000011 00*50')), {
      fault: 'length',
      message: /is 58, must be at least 65/,
    });
  });

  it('a long CDB and a bidirectional length are additional headers', () => {
    const header = hex('01800000 07000000 00*40');
    const ahs = hex('000d 01 00 0102030405060708090a0b0c 0005 02 00 00000200 00*4');
    // 12 bytes of CDB and the header of 4; 8 of a bidirectional length; 4 of a third that is none.
    assert.throws(() => wire.readInitiatorPdu(Buffer.concat([header, ahs])), { fault: 'length' });
    const right = hex('01800000 06000000 00*40');
    const pdu = wire.readInitiatorPdu(Buffer.concat([right, ahs.subarray(0, 24)]));
    assert.equal(toHex(pdu.ahs.extendedCdb!), '0102030405060708090a0b0c');
    assert.equal(pdu.ahs.bidirectionalReadLength, 512);
  });

  it('an additional header of another type is refused', () => {
    assert.throws(() => wire.readAhs(hex('0005 07 00 00000000')), {
      message: 'AHSType is 7, must be 1 or 2, each once',
    });
  });

  it('immediate requests, Data-Out and SNACK take no CmdSN', () => {
    const takes = (header: { bytes: Uint8Array }): boolean =>
      wire.takesCmdSn(wire.readInitiatorPdu(header.bytes));
    assert.equal(takes(wire.scsiCommand.make({})), true);
    assert.equal(takes(wire.scsiCommand.make({ immediate: true })), false);
    assert.equal(takes(wire.loginRequest.make({})), false);
    assert.equal(takes(wire.dataOut.make({})), false);
    assert.equal(takes(wire.snackRequest.make({})), false);
  });
});

const FORMATS = {
  nopOut: wire.nopOut,
  scsiCommand: wire.scsiCommand,
  taskManagementRequest: wire.taskManagementRequest,
  loginRequest: wire.loginRequest,
  textRequest: wire.textRequest,
  dataOut: wire.dataOut,
  logoutRequest: wire.logoutRequest,
  snackRequest: wire.snackRequest,
  nopIn: wire.nopIn,
  scsiResponse: wire.scsiResponse,
  taskManagementResponse: wire.taskManagementResponse,
  loginResponse: wire.loginResponse,
  textResponse: wire.textResponse,
  dataIn: wire.dataIn,
  logoutResponse: wire.logoutResponse,
  r2t: wire.r2t,
  asyncMessage: wire.asyncMessage,
  reject: wire.reject,
};
