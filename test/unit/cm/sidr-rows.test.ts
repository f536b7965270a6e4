/** Every row of the SIDR tables as it is lived, and every pair without a row. */
import assert from 'node:assert/strict';
import {
  ASKED_TABLE,
  ASKING_TABLE,
  type SidrInput,
  type SidrState,
} from '../../../plugins/cm/sidr/states.js';
import type { SidrInquiry } from '../../../plugins/cm/sidr/inquiry.js';
import type { SidrResolution } from '../../../plugins/cm/sidr/resolution.js';
import { type Asking, SidrPair, UDP_QKEY, withQpn } from '../../support/sidr-pair.js';

const NONE = new Uint8Array(0);

/** The side that wants a queue pair number, or the one that has the service. */
type SidrRole = 'asking' | 'asked';

/** State, input; then the state after it, messages sent, results told, timers left. */
type Line = readonly [SidrState, SidrInput, SidrState, string, string, number];

const LINES: Record<SidrRole, readonly Line[]> = {
  asking: [
    ['IDLE', 'resolve', 'SIDR_REQ_SENT', 'SIDR_REQ', '', 2],
    ['SIDR_REQ_SENT', 'SIDR_REP', 'IDLE', '', '0', 0],
    ['SIDR_REQ_SENT', 'retry', 'SIDR_REQ_SENT', 'SIDR_REQ', '', 2],
    ['SIDR_REQ_SENT', 'hint', 'SIDR_REQ_SENT', '', '', 2],
    ['SIDR_REQ_SENT', 'repeat', 'SIDR_REQ_SENT', 'SIDR_REQ', '', 2],
    ['SIDR_REQ_SENT', 'exhausted', 'IDLE', '', 'unreachable', 0],
    ['SIDR_REQ_SENT', 'deadline', 'IDLE', '', 'timed-out', 0],
    ['SIDR_REQ_SENT', 'unreachable', 'IDLE', '', 'unreachable', 0],
    ['SIDR_REQ_SENT', 'cancel', 'IDLE', '', '', 0],
    ['SIDR_REQ_SENT', 'close', 'IDLE', '', '', 0],
  ],
  asked: [
    ['SIDR_REQ_RCVD', 'SIDR_REQ', 'SIDR_REQ_RCVD', '', '', 1],
    ['SIDR_REQ_RCVD', 'accept', 'SIDR_REP_SENT', 'SIDR_REP', '', 1],
    ['SIDR_REQ_RCVD', 'reject', 'SIDR_REP_SENT', 'SIDR_REP', '', 1],
    ['SIDR_REQ_RCVD', 'expired', 'IDLE', '', '', 0],
    ['SIDR_REQ_RCVD', 'close', 'IDLE', 'SIDR_REP', '', 0],
    ['SIDR_REP_SENT', 'SIDR_REQ', 'SIDR_REP_SENT', 'SIDR_REP', '', 1],
    ['SIDR_REP_SENT', 'expired', 'IDLE', '', '', 0],
    ['SIDR_REP_SENT', 'close', 'IDLE', '', '', 0],
  ],
};

class Scene {
  readonly pair = new SidrPair();
  asking: Asking | undefined;

  constructor(readonly role: SidrRole) {
    this.pair.network.fate = () => [];
  }

  get subject(): SidrResolution | SidrInquiry {
    const { asking, pair } = this;
    return (this.role === 'asking' ? asking?.resolution : pair.inquiries[0]) as SidrInquiry;
  }

  async reach(state: SidrState): Promise<void> {
    if (state === 'IDLE') return;
    this.asking = this.pair.ask({ timeoutUs: 60_000_000 });
    if (this.role === 'asking') return;
    this.asking.resolution.cancel();
    this.pair.serve();
    await this.happen('SIDR_REQ');
    if (state === 'SIDR_REP_SENT') await this.happen('accept');
  }

  async happen(input: SidrInput): Promise<void> {
    const { pair } = this;
    const [req] = pair.bodies('SIDR_REQ');
    const [inquiry] = pair.inquiries;
    if (input === 'resolve') this.asking = pair.ask({ timeoutUs: 60_000_000 });
    else if (input === 'SIDR_REQ' && req) pair.inject(pair.b, { name: 'SIDR_REQ', body: req });
    else if (input === 'SIDR_REP' && req) {
      const { requestId, serviceId } = req;
      const body = { ...ANSWER, requestId, serviceId };
      pair.inject(pair.a, { name: 'SIDR_REP', body });
    } else if (input === 'accept' && inquiry) withQpn(7)(inquiry);
    else if (input === 'reject') inquiry?.reject({ status: 2, privateData: NONE });
    else if (input === 'cancel') this.asking?.resolution.cancel();
    else if (input === 'hint' && this.role === 'asking') {
      pair.a.device.reportUnreachable(this.subject.remoteGid);
    } else this.subject.dispatch(input);
    await pair.world.runFor(1);
  }
}

const ANSWER = {
  status: 0,
  additionalInfoLength: 0,
  vendorId: 0,
  qpn: 7,
  qkey: UDP_QKEY,
  additionalInfo: NONE,
  privateData: NONE,
};

describe('CM: every SIDR row, lived', () => {
  for (const role of ['asking', 'asked'] as const) {
    for (const [state, input, next, messages, told, timers] of LINES[role]) {
      it(`${role}, ${state}: ${input} to ${next}`, async () => {
        const scene = new Scene(role);
        await scene.reach(state);
        if (state !== 'IDLE') assert.equal(scene.subject.state, state);
        const sent = scene.pair.messages.length;
        await scene.happen(input);
        assert.equal(scene.subject.state, next);
        assert.equal(scene.pair.messages.slice(sent).join(), messages);
        const results = scene.asking?.results ?? [];
        assert.equal(results.map(({ status, failure }) => failure ?? status).join(), told);
        assert.equal(scene.pair.world.activeTimers, timers);
        await scene.pair.world.run();
        assert.ok(scene.pair.a.cm.isIdle && scene.pair.b.cm.isIdle);
      });
    }
  }

  it('is every row there is', () => {
    for (const [role, table] of [
      ['asking', ASKING_TABLE],
      ['asked', ASKED_TABLE],
    ] as const) {
      const rows = Object.entries(table).flatMap(([state, inputs]) =>
        Object.keys(inputs).map((input) => `${state} ${input}`),
      );
      const lived = LINES[role].map(([state, input]) => `${state} ${input}`);
      assert.deepEqual(lived.sort(), rows.sort());
    }
  });

  it('renews the time that a request is kept with every repetition', async () => {
    for (const [state, lifeUs] of [
      ['SIDR_REQ_RCVD', 68_000_000],
      ['SIDR_REP_SENT', 8_000_000],
    ] as const) {
      const scene = new Scene('asked');
      await scene.reach(state);
      for (let i = 0; i < 3; i++) {
        await scene.pair.world.runFor(lifeUs);
        assert.equal(scene.subject.state, state);
        await scene.happen('SIDR_REQ');
      }
      await scene.pair.world.runFor(lifeUs * 1.1);
      assert.equal(scene.subject.state, 'IDLE');
    }
  });

  it('keeps an answer for its own time, not for that of a question', async () => {
    for (const answer of ['accept', 'reject'] as const) {
      const scene = new Scene('asked');
      await scene.reach('SIDR_REQ_RCVD');
      await scene.happen(answer);
      assert.equal(scene.subject.state, 'SIDR_REP_SENT');
      await scene.pair.world.runFor(9_000_000);
      assert.equal(scene.subject.state, 'IDLE');
    }
  });

  it('has no row for what cannot be', () => {
    assert.equal(ASKING_TABLE.IDLE?.SIDR_REP, undefined);
    assert.equal(ASKED_TABLE.SIDR_REP_SENT?.accept, undefined);
    assert.equal(ASKED_TABLE.IDLE?.SIDR_REQ, undefined);
  });
});
