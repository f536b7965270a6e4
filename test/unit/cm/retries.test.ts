/** How often each message of the CM is sent when nobody answers, and for how long. */
import assert from 'node:assert/strict';
import {
  DREQ_RETRIES,
  MAX_CM_RETRIES,
  REQ_RETRIES,
  type RetryPolicy,
  repRetries,
  retryWaitUs,
} from '../../../plugins/cm/common/timing.js';
import { CmPair, type Side, typesOf } from '../../support/cm-pair.js';

/** When nothing is heard any more: after the wait that follows the last repetition. */
function silenceUs(policy: RetryPolicy): number {
  let sum = 0;
  for (let attempt = 0; attempt <= policy.retries; attempt++) sum += retryWaitUs(policy, attempt);
  return sum;
}

const times = <T>(count: number, what: T): T[] => new Array<T>(count).fill(what);

describe('CM: messages that are not answered', () => {
  it('REQ is sent once and repeated 15 times; the connect ends after the last wait', async () => {
    const pair = new CmPair();
    pair.network.fate = () => [];
    const { events } = pair.connect();
    await pair.world.runFor(silenceUs(REQ_RETRIES) - 1);
    assert.deepEqual(pair.messages, times(1 + MAX_CM_RETRIES, 'REQ'));
    assert.deepEqual(typesOf(events), []);
    await pair.world.runFor(2);
    assert.deepEqual(typesOf(events), ['unreachable']);
    await pair.world.run();
    assert.equal(pair.messages.length, 1 + MAX_CM_RETRIES);
    assert.equal(pair.bodies('REQ')[0]?.maxCmRetries, MAX_CM_RETRIES, 'what the peer is told');
    const [ended] = events;
    assert.ok(ended?.type === 'unreachable');
    assert.match(ended.detail, /16 requests/);
  });

  it('REP is repeated as often as the peer’s REQ says', async () => {
    for (const retries of [0, 1, 15]) {
      const pair = new CmPair();
      let passive: Side | undefined;
      pair.network.fate = () => [];
      pair.listen((request) => (passive = pair.accept(request)));
      pair.connect();
      const [req] = pair.bodies('REQ');
      assert.ok(req);
      pair.inject(pair.b, { name: 'REQ', body: { ...req, maxCmRetries: retries } });
      await pair.world.runFor(0);
      const policy = repRetries(req.localCmResponseTimeout, retries);
      assert.equal(policy.retries, retries);
      await pair.world.runFor(silenceUs(policy) - 1);
      const reps = (): number => pair.messages.filter((name) => name === 'REP').length;
      assert.equal(reps(), 1 + retries);
      assert.deepEqual(typesOf(passive?.events ?? []), []);
      await pair.world.runFor(10);
      assert.deepEqual(typesOf(passive?.events ?? []), ['accept-failed']);
      await pair.world.run();
      assert.equal(reps(), 1 + retries);
    }
  });

  it('DREQ is sent once and repeated seven times', async () => {
    const pair = new CmPair();
    const { active } = await pair.established();
    const before = pair.messages.length;
    pair.network.fate = () => [];
    active.connection.disconnect();
    await pair.world.runFor(silenceUs(DREQ_RETRIES) - 1);
    assert.deepEqual(pair.messages.slice(before), times(1 + DREQ_RETRIES.retries, 'DREQ'));
    assert.deepEqual(typesOf(active.events), ['established']);
    await pair.world.runFor(2);
    assert.deepEqual(typesOf(active.events), ['established', 'disconnected']);
    await pair.world.run();
    assert.equal(pair.messages.length, before + 1 + DREQ_RETRIES.retries);
  });

  it('intervals double from the first to the limit, which they keep', () => {
    const waits = (policy: RetryPolicy, count: number): number[] =>
      Array.from({ length: count }, (_, attempt) => retryWaitUs(policy, attempt) / 1000);
    assert.deepEqual(waits(REQ_RETRIES, 6), [500, 1000, 2000, 4000, 4000, 4000]);
    assert.deepEqual(waits(DREQ_RETRIES, 4), [200, 400, 500, 500]);
  });
});
