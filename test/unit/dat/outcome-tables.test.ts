import assert from 'node:assert/strict';
import { ASYNC_EVENTS, type AsyncEventRow } from '../../../core/dat/common/async-events.js';
import { CM_REFUSALS, refusalOf } from '../../../core/dat/endpoint/states.js';
import { DatDtoStatus, dtoStatusOf } from '../../../core/evd/index.js';
import { AsyncEventType, WcStatus } from '../../../core/spi/index.js';

describe('work completions', () => {
  /** Status by status, as in uDAPL (dapl/openib_common/cq.c, `dapls_ib_get_dto_status`). */
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
  /**
   * As in uDAPL (dapl/openib_common/util.c, `dapls_ib_get_async_event`), except where we do better.
   * EVDs and SRQs report their own events.
   */
  const table: Readonly<Record<keyof typeof AsyncEventType, string>> = {
    CQ_ERR: 'log',
    QP_FATAL: 'endpoint broken',
    QP_REQ_ERR: 'endpoint broken',
    QP_ACCESS_ERR: 'endpoint broken',
    COMM_EST: 'log',
    SQ_DRAINED: 'log',
    PATH_MIG: 'log',
    PATH_MIG_ERR: 'log',
    DEVICE_FATAL: 'adapter, reason 0',
    PORT_ACTIVE: 'log',
    PORT_ERR: 'adapter, reason 1',
    LID_CHANGE: 'adapter, reason 1',
    PKEY_CHANGE: 'adapter, reason 1',
    SM_CHANGE: 'adapter, reason 1',
    SRQ_ERR: 'log',
    SRQ_LIMIT_REACHED: 'log',
    QP_LAST_WQE_REACHED: 'log',
    CLIENT_REREGISTER: 'log',
    GID_CHANGE: 'log',
  };

  it("become DAT's asynchronous errors, or a line in the log", () => {
    const outcome = ({ reason, breaks }: AsyncEventRow): string =>
      breaks ? 'endpoint broken' : reason === undefined ? 'log' : `adapter, reason ${reason}`;
    const ours = Object.entries(ASYNC_EVENTS).map(([event, row]) => [event, outcome(row)]);
    assert.deepEqual(Object.fromEntries(ours), table);
    assert.deepEqual(Object.keys(AsyncEventType), Object.keys(table));
  });
});

describe('refusals', () => {
  it("become DAT's connection events (dapl/openib_common/util.c)", () => {
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
