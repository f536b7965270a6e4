import assert from 'node:assert/strict';
import { ASYNC_EVENTS } from '../../../core/dat/common/async-event-table.js';
import { CM_REFUSALS, refusalOf } from '../../../core/dat/endpoint/outcomes.js';
import { DatDtoStatus, DatEventNumber, dtoStatusOf } from '../../../core/evd/index.js';
import { AsyncEventType, WcStatus } from '../../../core/spi/index.js';

describe('work completions', () => {
  /** Status by status, as dapl has it (DAT facts 3.3). */
  const table: Readonly<Record<keyof typeof WcStatus, keyof typeof DatDtoStatus>> = {
    SUCCESS: 'SUCCESS',
    LOC_LEN_ERR: 'LOCAL_LENGTH',
    LOC_QP_OP_ERR: 'LOCAL_EP',
    LOC_EEC_OP_ERR: 'TRANSPORT',
    LOC_PROT_ERR: 'LOCAL_PROTECTION',
    WR_FLUSH_ERR: 'FLUSHED',
    MW_BIND_ERR: 'RMR_OPERATION_FAILED',
    BAD_RESP_ERR: 'BAD_RESPONSE',
    LOC_ACCESS_ERR: 'LOCAL_PROTECTION',
    REM_INV_REQ_ERR: 'REMOTE_RESPONDER',
    REM_ACCESS_ERR: 'REMOTE_ACCESS',
    REM_OP_ERR: 'REMOTE_RESPONDER',
    RETRY_EXC_ERR: 'TRANSPORT',
    RNR_RETRY_EXC_ERR: 'RECEIVER_NOT_READY',
    LOC_RDD_VIOL_ERR: 'LOCAL_PROTECTION',
    REM_INV_RD_REQ_ERR: 'REMOTE_RESPONDER',
    REM_ABORT_ERR: 'REMOTE_RESPONDER',
    INV_EECN_ERR: 'TRANSPORT',
    INV_EEC_STATE_ERR: 'TRANSPORT',
    FATAL_ERR: 'TRANSPORT',
    RESP_TIMEOUT_ERR: 'RECEIVER_NOT_READY',
    GENERAL_ERR: 'TRANSPORT',
  };

  it("become DAT's DTO statuses", () => {
    assert.deepEqual(Object.keys(WcStatus), Object.keys(table));
    for (const [wc, dat] of Object.entries(table)) {
      const status = dtoStatusOf(WcStatus[wc as keyof typeof WcStatus]);
      assert.equal(status, DatDtoStatus[dat], wc);
    }
    assert.equal(dtoStatusOf(99), DatDtoStatus.FLUSHED, 'a status that nobody knows');
  });
});

describe('device events', () => {
  /** What dapl makes of them, and where we do better (DAT facts 3.4). */
  const table: Readonly<Record<keyof typeof AsyncEventType, string>> = {
    CQ_ERR: 'EVD ASYNC_EVD_OVERFLOW 0',
    QP_FATAL: 'EP ASYNC_EP_BROKEN 0',
    QP_REQ_ERR: 'EP ASYNC_EP_BROKEN 0',
    QP_ACCESS_ERR: 'EP ASYNC_EP_BROKEN 0',
    COMM_EST: 'EP log',
    SQ_DRAINED: 'EP log',
    PATH_MIG: 'EP log',
    PATH_MIG_ERR: 'EP log',
    DEVICE_FATAL: 'IA ASYNC_IA_CATASTROPHIC 0',
    PORT_ACTIVE: 'IA log',
    PORT_ERR: 'IA ASYNC_IA_CATASTROPHIC 1',
    LID_CHANGE: 'IA ASYNC_IA_CATASTROPHIC 1',
    PKEY_CHANGE: 'IA ASYNC_IA_CATASTROPHIC 1',
    SM_CHANGE: 'IA ASYNC_IA_CATASTROPHIC 1',
    SRQ_ERR: 'SRQ ASYNC_PROVIDER_INTERNAL_ERROR 0',
    SRQ_LIMIT_REACHED: 'SRQ ASYNC_PROVIDER_INTERNAL_ERROR 2',
    QP_LAST_WQE_REACHED: 'EP log',
    CLIENT_REREGISTER: 'IA log',
    GID_CHANGE: 'IA log',
  };

  it("become DAT's asynchronous errors, or a line in the log", () => {
    const name = (value: number): string =>
      Object.entries(DatEventNumber).find(([, number]) => number === value)?.[0] ?? '';
    const ours = Object.entries(ASYNC_EVENTS).map(([event, { object, number, reason }]) => [
      event,
      number === undefined ? `${object} log` : `${object} ${name(number)} ${reason}`,
    ]);
    assert.deepEqual(Object.fromEntries(ours), table);
    assert.deepEqual(Object.keys(AsyncEventType), Object.keys(table));
  });
});

describe('refusals', () => {
  it("become DAT's connection events (DAT facts 3.5)", () => {
    const active = Object.entries(CM_REFUSALS).map(([kind, row]) => [kind, row.active]);
    assert.deepEqual(Object.fromEntries(active), {
      'rejected-by-consumer': 'PEER_REJECTED',
      rejected: 'NON_PEER_REJECTED',
      unreachable: 'UNREACHABLE',
      'timed-out': 'TIMED_OUT',
      'accept-failed': 'NON_PEER_REJECTED',
    });
    for (const { passive } of Object.values(CM_REFUSALS)) {
      assert.equal(passive, 'ACCEPT_COMPLETION_ERROR');
    }
  });

  it('tell the consumer of the peer and its CM apart', () => {
    const rejected = { type: 'rejected', reason: 28, privateData: new Uint8Array(0) } as const;
    assert.equal(refusalOf({ ...rejected, consumer: true }, true), 'PEER_REJECTED');
    assert.equal(refusalOf({ ...rejected, consumer: false }, true), 'NON_PEER_REJECTED');
    assert.equal(refusalOf({ ...rejected, consumer: true }, false), 'ACCEPT_COMPLETION_ERROR');
    assert.equal(refusalOf({ type: 'timed-out' }, true), 'TIMED_OUT');
  });
});
