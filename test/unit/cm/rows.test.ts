/**
 * Every row of the state tables as it is lived: the connection is brought to the state, the input
 * happens, and the state, the messages sent and the consumer's events are those of row-lines.ts.
 */
import assert from 'node:assert/strict';
import { AsyncEventType, type CmEvent, type CmRequest, QpState } from '../../../core/spi/index.js';
import {
  ACTIVE_TABLE,
  CM_INPUTS,
  type CmInput,
  type CmRole,
  type CmState,
  PASSIVE_TABLE,
  transition,
} from '../../../plugins/cm/connection/states.js';
import type { Connection } from '../../../plugins/cm/connection/connection.js';
import { HINTED_REPEAT_US, REQUESTS_PER_PEER } from '../../../plugins/cm/common/timing.js';
import type { ConnectionTable } from '../../../plugins/cm/connection/table.js';
import type {
  LimitedRequest,
  RequestLimiter,
} from '../../../plugins/cm/connection/request-limiter.js';
import { CmPair, type Side } from '../../support/cm-pair.js';
import { LINES } from './row-lines.js';

const NONE = new Uint8Array(0);

/** Passed through within one call, or tested with queue pairs that fail (refusals.test.ts). */
const PASSING: readonly CmState[] = ['IDLE', 'REP_RCVD', 'DREQ_RCVD'];
const QP_INPUTS: readonly string[] = ['qpReady', 'qpFailed'];

/** Of a connect: longer than all retries, and a timer that is to be stopped. */
const LIMIT_US = 1e9;

class Scene {
  readonly pair = new CmPair();
  request: CmRequest | undefined;
  /** What comes of the request. */
  private requested: Connection | undefined;
  side: Side | undefined;
  /** Other requests that use up the limit. */
  private readonly others: LimitedRequest[] = [];

  constructor(readonly role: CmRole) {
    // What the node under test sends goes nowhere: nothing happens but what the test does.
    this.pair.network.fate = () => [];
  }

  get node(): CmPair['a'] {
    return this.role === 'active' ? this.pair.a : this.pair.b;
  }

  get connection(): Connection {
    return (this.side?.connection ?? this.requested) as Connection;
  }

  get events(): readonly CmEvent[] {
    return this.side?.events ?? [];
  }

  private get inside(): { readonly limiter: RequestLimiter; readonly table: ConnectionTable } {
    return this.node.cm as unknown as { limiter: RequestLimiter; table: ConnectionTable };
  }

  private get limiter(): RequestLimiter {
    return this.inside.limiter;
  }

  takeTurns(): void {
    const { pair, node, others, limiter } = this;
    const [remoteGid = NONE] = (node === pair.a ? pair.b : pair.a).device.gids;
    for (let i = 0; i < REQUESTS_PER_PEER; i++) others.push({ remoteGid, onTurn: () => undefined });
    for (const other of others) limiter.enter(other);
  }

  giveTurns(): void {
    for (const other of this.others.splice(0)) this.limiter.leave(other);
  }

  async reach(state: CmState): Promise<void> {
    if (state === 'REQ_QUEUED') this.takeTurns();
    if (this.role === 'active') this.side = this.pair.connect({ timeoutUs: LIMIT_US });
    else await this.receiveReq();
    const early: readonly CmState[] = ['REQ_QUEUED', 'REQ_SENT', 'REQ_RCVD'];
    if (early.includes(state)) return;
    if (state === 'MRA_REQ_RCVD') return this.happen('MRA');
    if (state === 'MRA_REQ_SENT') return this.happen('REQ');
    await this.happen(this.role === 'active' ? 'REP' : 'accept');
    if (state === 'REP_SENT') return;
    if (state === 'MRA_REP_RCVD') return this.happen('MRA');
    if (this.role === 'passive') await this.happen('RTU');
    if (state === 'DREQ_QUEUED') this.takeTurns();
    if (state !== 'ESTABLISHED') await this.happen('disconnect');
    if (state === 'TIMEWAIT') await this.happen('DREP');
  }

  /** By a message or a call where there is one, else straight to the table. */
  async happen(input: CmInput): Promise<void> {
    if (!this.message(input) && !this.call(input)) this.connection.dispatch(input);
    await this.pair.world.runFor(1);
  }

  private async receiveReq(): Promise<void> {
    this.pair.listen((request) => (this.request = request));
    // Its REQ is all that is wanted of the peer: no timer of it is to run.
    this.pair.connect().connection.abandon();
    this.injectReq();
    await this.pair.world.runFor(1);
    [this.requested] = this.inside.table.all();
  }

  private injectReq(): void {
    const [body] = this.pair.bodies('REQ');
    if (body) this.pair.inject(this.node, { name: 'REQ', body });
  }

  private message(input: CmInput): boolean {
    const { pair, node, connection } = this;
    const { localCommId: remoteCommId, localQpn: remoteQpn } = connection;
    const ids = { localCommId: connection.remoteCommId || 77, remoteCommId, privateData: NONE };
    const info = { rejectInfoLength: 0, additionalRejectInfo: NONE };
    const rej = { ...ids, ...info, messageRejected: 1 };
    const mraed = this.role === 'active' ? 0 : 1;
    if (input === 'REQ') this.injectReq();
    else if (input === 'REP') pair.inject(node, { name: 'REP', body: { ...REP, ...ids } });
    else if (input === 'RTU' || input === 'DREP') pair.inject(node, { name: input, body: ids });
    else if (input === 'DREQ') pair.inject(node, { name: 'DREQ', body: { ...ids, remoteQpn } });
    else if (input === 'LAP') {
      pair.inject(node, { name: 'LAP', body: { ...LAP, ...ids, remoteQpn } });
    } else if (input === 'APR') {
      pair.inject(node, { name: 'APR', body: { ...APR, ...ids } });
    } else if (input === 'REJ') pair.inject(node, { name: 'REJ', body: { ...rej, reason: 28 } });
    else if (input === 'REJ_STALE') {
      pair.inject(node, { name: 'REJ', body: { ...rej, reason: 10 } });
    } else if (input === 'MRA') {
      pair.inject(node, { name: 'MRA', body: { ...ids, messageMraed: mraed, serviceTimeout: 20 } });
    } else return false;
    return true;
  }

  private call(input: CmInput): boolean {
    const { connection, request } = this;
    if (input === 'turn') this.giveTurns();
    else if (input === 'disconnect') connection.disconnect();
    else if (input === 'abandon') connection.abandon();
    else if (input === 'commEst' && this.side) this.side.qp.raise(AsyncEventType.COMM_EST);
    else if (input === 'hint') this.node.device.reportUnreachable(connection.remoteGid);
    else if (input === 'accept' && request) this.side = this.pair.accept(request);
    else if (input === 'reject') request?.reject({ reason: 28, privateData: NONE });
    else return false;
    return true;
  }
}

const REP = {
  localQkey: 0,
  localQpn: 99,
  vendorId: 0,
  localEecn: 0,
  startingPsn: 5,
  responderResources: 1,
  initiatorDepth: 1,
  targetAckDelay: 15,
  failoverAccepted: 0,
  endToEndFlowControl: 0,
  rnrRetryCount: 7,
  srq: 0,
  localCaGuid: 1234n,
};

const LAP = {
  remoteCmResponseTimeout: 20,
  alternateLocalLid: 1,
  alternateRemoteLid: 2,
  alternateLocalGid: new Uint8Array(16),
  alternateRemoteGid: new Uint8Array(16),
  alternateFlowLabel: 0,
  alternateTrafficClass: 0,
  alternateHopLimit: 64,
  alternatePacketRate: 0,
  alternateSl: 0,
  alternateSubnetLocal: 0,
  alternateLocalAckTimeout: 18,
};

const APR = { additionalInfoLength: 0, apStatus: 0, additionalInfo: NONE };

/** A connection that was, and is not any more, has flushed its queue pair. */
function assertQueuePair(
  { side, role }: Scene,
  state: CmState,
  input: CmInput,
  next: CmState,
): void {
  const { qp } = side ?? {};
  const connecting: readonly CmState[] = [
    'REQ_QUEUED',
    'REQ_SENT',
    'MRA_REQ_RCVD',
    'REQ_RCVD',
    'MRA_REQ_SENT',
  ];
  if (qp && role === 'active' && input === 'disconnect') assert.equal(qp.state, QpState.ERR);
  if (!qp || connecting.includes(state)) return;
  const over: readonly CmState[] = ['IDLE', 'DREQ_QUEUED', 'DREQ_SENT', 'TIMEWAIT'];
  if (over.includes(next)) assert.equal(qp.state, QpState.ERR);
  else if (next === 'ESTABLISHED') assert.equal(qp.state, QpState.RTS);
  else assert.equal(qp.state, role === 'active' ? QpState.INIT : QpState.RTR);
}

/** The wait for an answer, for timewait to end; a connect has its limit besides. */
function assertTimers({ pair, role }: Scene, next: CmState): void {
  const none: readonly CmState[] = [
    'IDLE',
    'ESTABLISHED',
    'REQ_RCVD',
    'MRA_REQ_SENT',
    'DREQ_QUEUED',
  ];
  const asking: readonly CmState[] = ['REQ_SENT', 'MRA_REQ_RCVD'];
  const expected = none.includes(next) ? 0 : role === 'active' && asking.includes(next) ? 2 : 1;
  assert.equal(pair.world.activeTimers, expected);
}

/** What a hint brings forward, once; the wait for its answer is then what it was. */
async function assertHastened({ pair, role }: Scene, state: CmState): Promise<void> {
  const sent = pair.messages.length;
  const { activeTimers } = pair.world;
  const repeated = state === 'DREQ_SENT' ? 'DREQ' : role === 'active' ? 'REQ' : 'REP';
  await pair.world.runFor(HINTED_REPEAT_US);
  assert.deepEqual(pair.messages.slice(sent), [repeated]);
  assert.equal(pair.world.activeTimers, activeTimers);
}

/** With a silent peer, it is over by itself wherever nobody is waited for but the peer. */
async function assertEnd(scene: Scene, input: CmInput, next: CmState): Promise<void> {
  const { world } = scene.pair;
  scene.giveTurns();
  const lasting: readonly CmState[] = ['IDLE', 'ESTABLISHED', 'REQ_RCVD', 'MRA_REQ_SENT'];
  if (lasting.includes(next)) {
    assert.equal(world.activeTimers, 0);
    return;
  }
  const told = scene.events.length;
  await world.run();
  assert.equal(scene.connection.state, 'IDLE');
  assert.equal(world.activeTimers, 0);
  assert.ok(scene.node.cm.isIdle);
  // A connect is given up by its retries, not by its limit.
  assert.ok(input === 'deadline' || !scene.events.some(({ type }) => type === 'timed-out'));
  if (input === 'abandon' || input === 'close') assert.equal(scene.events.length, told);
  else assert.ok(scene.events.length > 0);
}

const nameOfEvent = (event: CmEvent): string =>
  event.type === 'disconnected' && event.byPeer ? 'disconnected by peer' : event.type;

describe('CM: every row, lived', () => {
  for (const role of ['active', 'passive'] as const) {
    for (const [state, input, next, messages, events] of LINES[role]) {
      it(`${role}, ${state}: ${input} to ${next}`, async () => {
        const scene = new Scene(role);
        await scene.reach(state);
        assert.equal(scene.connection.state, state);
        const sent = scene.pair.messages.length;
        const told = scene.events.length;
        await scene.happen(input);
        assert.equal(scene.connection.state, next);
        assert.equal(scene.pair.messages.slice(sent).join(), messages);
        assert.equal(scene.events.slice(told).map(nameOfEvent).join(), events);
        assert.equal(scene.node.cm.counters.unexpected, 0);
        assertQueuePair(scene, state, input, next);
        assertTimers(scene, next);
        if (input === 'hint') await assertHastened(scene, state);
        await assertEnd(scene, input, next);
      });
    }
  }

  for (const state of ['REP_SENT', 'MRA_REP_RCVD'] as const) {
    for (const input of ['RTU', 'commEst'] as const) {
      it(`passive, ${state}: ${input} ends the wait, though the QP cannot send`, async () => {
        const scene = new Scene('passive');
        await scene.reach(state);
        assert.ok(scene.side);
        scene.side.qp.refuse = QpState.RTS;
        scene.takeTurns();
        await scene.happen(input);
        assert.equal(scene.connection.state, 'DREQ_QUEUED');
        assert.equal(scene.pair.world.activeTimers, 0);
        await assertEnd(scene, input, 'DREQ_QUEUED');
      });
    }
  }

  it('passive, REP_SENT: a hint brings the REP forward whose wait has grown', async () => {
    const scene = new Scene('passive');
    await scene.reach('REP_SENT');
    // The first wait is as short as what a hint leaves of it; the second is twice as long.
    await scene.pair.world.runFor(HINTED_REPEAT_US);
    await scene.happen('hint');
    await assertHastened(scene, 'REP_SENT');
  });

  for (const state of ['REQ_SENT', 'MRA_REQ_RCVD'] as const) {
    it(`active, ${state}: a REP of another connection's QP ends all but timewait`, async () => {
      const scene = new Scene('active');
      for (const next of ['ESTABLISHED', 'TIMEWAIT']) {
        await scene.reach(state);
        await scene.happen('REP');
        assert.equal(scene.connection.state, next);
      }
      assert.equal(scene.pair.world.activeTimers, 1);
    });
  }

  // What no row is for is dropped: nothing changes, nothing is sent, nobody is told, it is counted.
  const MESSAGES = CM_INPUTS.filter((input) => input === input.toUpperCase());
  const STATES: Record<CmRole, readonly CmState[]> = {
    active: [
      'REQ_QUEUED',
      'REQ_SENT',
      'MRA_REQ_RCVD',
      'ESTABLISHED',
      'DREQ_QUEUED',
      'DREQ_SENT',
      'TIMEWAIT',
    ],
    passive: [
      'REQ_RCVD',
      'MRA_REQ_SENT',
      'REP_SENT',
      'MRA_REP_RCVD',
      'ESTABLISHED',
      'DREQ_QUEUED',
      'DREQ_SENT',
      'TIMEWAIT',
    ],
  };
  for (const role of ['active', 'passive'] as const) {
    for (const state of STATES[role]) {
      const unexpected = MESSAGES.filter((message) => !transition(role, state, message));
      it(`${role}, ${state}: takes no notice of ${unexpected.join(', ')}`, async () => {
        const scene = new Scene(role);
        await scene.reach(state);
        const sent = scene.pair.messages.length;
        const told = scene.events.length;
        for (const message of unexpected) {
          // A REQ to the active side is nothing of this connection, and a request of its own.
          if (role === 'active' && message === 'REQ') continue;
          const { unexpected: before } = scene.node.cm.counters;
          await scene.happen(message);
          assert.equal(scene.connection.state, state, message);
          assert.equal(scene.node.cm.counters.unexpected, before + 1, message);
        }
        assert.equal(scene.pair.messages.length, sent);
        assert.equal(scene.events.length, told);
      });
    }
  }

  it('is every row there is', () => {
    for (const [role, table] of [
      ['active', ACTIVE_TABLE],
      ['passive', PASSIVE_TABLE],
    ] as const) {
      const lived = new Set(LINES[role].map(([state, input]) => `${state} ${input}`));
      const missing = Object.entries(table)
        .filter(([state]) => !PASSING.some((passing) => passing === state))
        .flatMap(([state, inputs]) => Object.keys(inputs).map((input) => [state, input] as const))
        .filter(([, input]) => !QP_INPUTS.includes(input))
        .map(([state, input]) => `${state} ${input}`)
        .filter((row) => !lived.has(row));
      // Of the rows that both sides share, these are the other side's.
      const foreign = role === 'active' ? /^(DREQ_QUEUED|DREQ_SENT|TIMEWAIT) (REQ|RTU)$/ : /^$/;
      assert.deepEqual(
        missing.filter((row) => !foreign.test(row)),
        [],
      );
    }
  });
});
