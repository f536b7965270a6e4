// Many requests to one peer: as many as it can answer are under way, the others wait.
import assert from 'node:assert/strict';
import { ATTEMPTS_THAT_COUNT, REQUESTS_PER_PEER } from '../../../plugins/cm/common/timing.js';
import {
  RequestLimiter,
  type LimitedRequest,
} from '../../../plugins/cm/connection/request-limiter.js';
import { CmPair, type Side, typesOf } from '../../support/cm-pair.js';

const [HERE, THERE] = [new Uint8Array(16).fill(1), new Uint8Array(16).fill(2)];

describe('CM: request limiter', () => {
  const taken: string[] = [];
  const request = (name: string, remoteGid = HERE): LimitedRequest => ({
    remoteGid,
    onTurn: () => taken.push(name),
  });

  beforeEach(() => taken.splice(0));

  it('are given in the order of asking, to each peer for itself', () => {
    const limiter = new RequestLimiter(2);
    const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((name) => request(name)) as [
      LimitedRequest,
      LimitedRequest,
      LimitedRequest,
      LimitedRequest,
    ];
    for (const one of [a, b, c, d]) limiter.enter(one);
    limiter.enter(request('elsewhere', THERE));
    assert.deepEqual(taken, ['a', 'b', 'elsewhere']);
    limiter.leave(c); // while it waits
    limiter.leave(b);
    limiter.leave(b);
    assert.deepEqual(taken.slice(3), ['d']);
    for (const one of [a, d]) limiter.leave(one);
    assert.ok(!limiter.isIdle);
  });

  it('are over when nobody has one, and after close', () => {
    const limiter = new RequestLimiter(1);
    const [a, b] = [request('a'), request('b')];
    limiter.enter(a);
    limiter.enter(b);
    limiter.close();
    limiter.leave(a);
    assert.deepEqual(taken, ['a']);
    limiter.leave(b);
    assert.ok(limiter.isIdle);
  });

  const COUNT = 10 * REQUESTS_PER_PEER;
  const connectMany = (pair: CmPair, timeoutUs = Infinity): Side[] =>
    Array.from({ length: COUNT }, () => pair.connect({ timeoutUs }));

  it('so a peer that takes its time is asked once for each connection, and told once', async () => {
    const pair = new CmPair();
    const [HANDLING_US, ROOM] = [3000, 2 * REQUESTS_PER_PEER];
    let [freeAtUs, underWay, most] = [0, 0, 0];
    // One message after the other, and none that comes while too many wait.
    pair.network.fate = (parcel) => {
      if (parcel.from === pair.b.device) return [10];
      if (underWay === ROOM) return [];
      const nowUs = pair.world.now();
      underWay += 1;
      most = Math.max(most, underWay);
      freeAtUs = Math.max(freeAtUs, nowUs) + HANDLING_US;
      pair.world.after(freeAtUs - nowUs, () => (underWay -= 1));
      return [freeAtUs - nowUs];
    };
    pair.listen((request) => void pair.accept(request), COUNT);
    const sides = connectMany(pair);
    await pair.world.runFor(COUNT * HANDLING_US * 4);
    for (const { events } of sides) assert.deepEqual(typesOf(events), ['established']);
    for (const { connection } of sides) connection.disconnect();
    await pair.world.runFor(COUNT * HANDLING_US * 4);
    for (const { events } of sides) assert.equal(events[1]?.type, 'disconnected');
    const sent = (name: string): number => pair.messages.filter((one) => one === name).length;
    assert.deepEqual([sent('REQ'), sent('DREQ')], [COUNT, COUNT]);
    assert.ok(most <= ROOM, `${most} at once`);
  });

  it('a peer that is gone holds the others up for three attempts, not for all', async () => {
    const pair = new CmPair();
    pair.network.fate = () => [];
    const sides = connectMany(pair);
    const asked = (): number =>
      new Set(pair.bodies('REQ').map(({ localCommId }) => localCommId)).size;
    await pair.world.runFor(1);
    assert.equal(asked(), REQUESTS_PER_PEER);
    await pair.world.runFor(3_500_000);
    assert.equal(asked(), 2 * REQUESTS_PER_PEER);
    assert.equal(ATTEMPTS_THAT_COUNT, 3);
    await pair.world.run();
    for (const { events } of sides) assert.deepEqual(typesOf(events), ['unreachable']);
    assert.ok(pair.a.cm.isIdle);
  });

  it('the limit of a connect goes on while it waits', async () => {
    const pair = new CmPair();
    pair.network.fate = () => [];
    const sides = connectMany(pair, 2_000_000);
    await pair.world.runFor(2_000_001);
    for (const { events } of sides) assert.deepEqual(typesOf(events), ['timed-out']);
    const asked = new Set(pair.bodies('REQ').map(({ localCommId }) => localCommId));
    assert.equal(pair.bodies('REJ').length, asked.size);
    assert.ok(pair.a.cm.isIdle);
  });

  it('closing the module sends nothing for those that wait', async () => {
    const pair = new CmPair();
    pair.network.fate = () => [];
    connectMany(pair);
    await pair.world.runFor(1);
    const closed = pair.a.cm.close();
    await pair.world.run();
    await closed;
    assert.equal(pair.bodies('REQ').length, REQUESTS_PER_PEER);
    assert.ok(pair.a.cm.isIdle);
  });
});
