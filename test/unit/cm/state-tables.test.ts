/** The CM's state tables, against Linux's (drivers/infiniband/core/cm.c) and against themselves. */
import assert from 'node:assert/strict';
import {
  ACTIVE_TABLE,
  type CmAction,
  type CmInput,
  type CmRole,
  type CmState,
  PASSIVE_TABLE,
  transition,
} from '../../../plugins/cm/connection/states.js';

type Row = readonly [CmState, CmInput, CmState, ...CmAction[]];

/** Rows in the order of cm.c; states.ts notes where our choice differs from it. */
const ACTIVE: readonly Row[] = [
  ['IDLE', 'connect', 'REQ_QUEUED', 'startDeadline', 'awaitTurn'],
  ['REQ_QUEUED', 'turn', 'REQ_SENT', 'sendReq', 'startRetries'],
  ['REQ_SENT', 'REP', 'REP_RCVD', 'stopTimers', 'raiseQp'],
  ['REQ_SENT', 'MRA', 'MRA_REQ_RCVD', 'extendWait'],
  ['REQ_SENT', 'REJ', 'IDLE', 'stopTimers', 'reportRejected'],
  ['REQ_SENT', 'REJ_STALE', 'TIMEWAIT', 'stopTimers', 'reportRejected'],
  ['REQ_SENT', 'retry', 'REQ_SENT', 'sendReq'],
  ['REQ_SENT', 'exhausted', 'IDLE', 'reportUnreachable'],
  ['REQ_SENT', 'abandon', 'IDLE', 'rejectTimeout'],
  ['MRA_REQ_RCVD', 'REP', 'REP_RCVD', 'raiseQp'],
  ['MRA_REQ_RCVD', 'REJ', 'IDLE', 'reportRejected'],
  ['MRA_REQ_RCVD', 'retry', 'MRA_REQ_RCVD', 'sendReq'],
  ['MRA_REQ_RCVD', 'MRA', 'MRA_REQ_RCVD'],
  ['REP_RCVD', 'qpReady', 'ESTABLISHED', 'sendRtu', 'reportEstablished'],
  ['REP_RCVD', 'qpFailed', 'IDLE', 'rejectRep'],
  ['ESTABLISHED', 'REP', 'ESTABLISHED', 'sendRtu'],
  ['ESTABLISHED', 'REJ', 'TIMEWAIT', 'failQp', 'reportDisconnectedByPeer'],
  ['ESTABLISHED', 'DREQ', 'DREQ_RCVD'],
  ['ESTABLISHED', 'disconnect', 'DREQ_QUEUED', 'failQp', 'awaitTurn'],
  ['DREQ_QUEUED', 'turn', 'DREQ_SENT', 'sendDreq', 'startDreqRetries'],
  ['DREQ_SENT', 'DREP', 'TIMEWAIT', 'stopTimers', 'reportDisconnected'],
  ['DREQ_SENT', 'DREQ', 'TIMEWAIT', 'stopTimers', 'sendDrep'],
  ['DREQ_SENT', 'REJ', 'TIMEWAIT'],
  ['DREQ_SENT', 'retry', 'DREQ_SENT', 'sendDreq'],
  ['DREQ_SENT', 'exhausted', 'TIMEWAIT', 'reportDisconnected'],
  ['DREQ_RCVD', 'answer', 'TIMEWAIT', 'failQp', 'sendDrep', 'reportDisconnectedByPeer'],
  ['TIMEWAIT', 'DREQ', 'TIMEWAIT', 'sendDrep'],
  ['TIMEWAIT', 'REQ', 'TIMEWAIT', 'rejectStale'],
  ['TIMEWAIT', 'timewaitOver', 'IDLE', 'reportTimewaitExit'],
];

const PASSIVE: readonly Row[] = [
  ['REQ_RCVD', 'REQ', 'MRA_REQ_SENT', 'sendMraReq'],
  ['REQ_RCVD', 'accept', 'REP_SENT', 'sendRep', 'startRetries'],
  ['REQ_RCVD', 'reject', 'IDLE', 'rejectReq'],
  ['REQ_RCVD', 'REJ', 'IDLE'],
  ['MRA_REQ_SENT', 'REQ', 'MRA_REQ_SENT', 'sendMraReq'],
  ['MRA_REQ_SENT', 'accept', 'REP_SENT', 'sendRep'],
  ['MRA_REQ_SENT', 'reject', 'IDLE', 'rejectReqMra'],
  ['REP_SENT', 'RTU', 'ESTABLISHED', 'stopTimers', 'startQp'],
  ['REP_SENT', 'commEst', 'ESTABLISHED', 'stopTimers', 'startQp'],
  ['REP_SENT', 'MRA', 'MRA_REP_RCVD', 'extendWait'],
  ['REP_SENT', 'REJ', 'IDLE', 'reportAcceptFailed'],
  ['REP_SENT', 'REJ_STALE', 'TIMEWAIT', 'reportAcceptFailed'],
  ['REP_SENT', 'DREQ', 'DREQ_RCVD'],
  ['REP_SENT', 'REQ', 'REP_SENT', 'sendRep'],
  ['REP_SENT', 'retry', 'REP_SENT', 'sendRep'],
  ['REP_SENT', 'exhausted', 'IDLE', 'reportAcceptFailed'],
  ['REP_SENT', 'abandon', 'TIMEWAIT', 'rejectOther'],
  ['MRA_REP_RCVD', 'RTU', 'ESTABLISHED', 'startQp'],
  ['MRA_REP_RCVD', 'REJ', 'IDLE', 'reportAcceptFailed'],
  ['MRA_REP_RCVD', 'retry', 'MRA_REP_RCVD', 'sendRep'],
  ['ESTABLISHED', 'qpReady', 'ESTABLISHED', 'reportEstablished'],
  ['ESTABLISHED', 'RTU', 'ESTABLISHED'],
  ['ESTABLISHED', 'REQ', 'ESTABLISHED'],
  ['ESTABLISHED', 'DREQ', 'DREQ_RCVD'],
  ['ESTABLISHED', 'disconnect', 'DREQ_QUEUED', 'failQp', 'awaitTurn'],
];

function assertRow(role: CmRole, [state, input, next, ...actions]: Row): void {
  const found = transition(role, state, input);
  assert.equal(found?.next, next);
  assert.deepEqual(
    found.actions.filter((action) => actions.includes(action)),
    actions,
  );
}

describe('CM: state tables', () => {
  for (const row of ACTIVE) {
    it(`active, ${row[0]}: ${row[1]} to ${row[2]}`, () => assertRow('active', row));
  }
  for (const row of PASSIVE) {
    it(`passive, ${row[0]}: ${row[1]} to ${row[2]}`, () => assertRow('passive', row));
  }

  const tables = { active: ACTIVE_TABLE, passive: PASSIVE_TABLE };
  const rows = Object.entries(tables).flatMap(([role, table]) =>
    Object.entries(table).flatMap(([state, inputs]) =>
      Object.entries(inputs).map(([input, row]) => ({ name: `${role} ${state} ${input}`, row })),
    ),
  );

  it('leads nowhere without a way out, IDLE excepted', () => {
    for (const [role, table] of Object.entries(tables)) {
      const states = new Set(
        Object.values(table)
          .flatMap((r) => Object.values(r))
          .map((r) => r.next),
      );
      for (const state of states) {
        if (state !== 'IDLE') assert.ok(table[state], `${role} ${state}`);
      }
    }
  });

  it('stops the timers before it is idle, and tells the consumer last', () => {
    for (const { name, row } of rows) {
      const reports = row.actions.filter((action) => action.startsWith('report'));
      assert.ok(reports.length <= 1, name);
      if (reports.length === 1) assert.equal(row.actions.at(-1), reports[0], name);
      const raises = row.actions.filter((action) => /^(raiseQp|startQp|goOn)$/.test(action));
      if (raises.length > 0) assert.equal(row.actions.at(-1), raises[0], name);
    }
  });

  it('waits in every state but those of the consumer', () => {
    const timed = /^(startRetries|startDreqRetries|nextRetry|resumeWait|extendWait|startTimewait)$/;
    for (const { name, row } of rows) {
      if (row.next === 'TIMEWAIT' && !name.includes(' TIMEWAIT ')) {
        assert.ok(row.actions.includes('startTimewait'), name);
      }
      if (row.actions.includes('sendReq') || row.actions.includes('sendDreq')) {
        assert.ok(
          row.actions.some((action) => timed.test(action)),
          name,
        );
      }
    }
  });

  it('has no row for what cannot be', () => {
    assert.equal(transition('active', 'IDLE', 'REP'), undefined);
    assert.equal(transition('active', 'REQ_SENT', 'RTU'), undefined);
    assert.equal(transition('passive', 'REQ_RCVD', 'RTU'), undefined);
    assert.equal(transition('passive', 'IDLE', 'connect'), undefined);
  });
});
