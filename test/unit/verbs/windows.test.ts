// Memory windows in the send queue: keys follow binds that are done, in whatever bursts they come.

import assert from 'node:assert/strict';
import type { MemoryWindow } from '../../../core/spi/device/device.js';
import { Access, WcOpcode, WcStatus, WrFlags, WrOpcode } from '../../../core/spi/wire/ib.js';
import { nextRkey } from '../../../core/spi/layout/rkey.js';
import { fakeVerbs, Mode } from '../../fake-verbs/control.js';
import { Pair } from '../../fake-verbs/pair.js';
import {
  type Completion,
  drain,
  postReceives,
  postSends,
  type Send,
} from '../../fake-verbs/work.js';

const outcomes = (completions: readonly Completion[]): [number, number][] =>
  completions.map((c) => [c.index, c.status]);
const { SUCCESS, WR_FLUSH_ERR, LOC_QP_OP_ERR, REM_ACCESS_ERR } = WcStatus;

describe('verbs: memory windows', () => {
  const fake = fakeVerbs();
  let pair: Pair;
  beforeEach(() => (pair = new Pair()));
  afterEach(() => pair.close());

  const bind = (window: MemoryWindow, rkey: number, length = 64n, flags?: number): Send => ({
    opcode: WrOpcode.BIND_MW,
    ...(flags !== undefined && { flags }),
    bind: {
      address: pair.region.iova + 8192n,
      length,
      window: window.handle,
      regionLkey: pair.region.lkey,
      access: Access.REMOTE_WRITE,
      rkey,
    },
  });
  const write = (rkey: number): Send => ({
    opcode: WrOpcode.RDMA_WRITE,
    segments: [pair.at(0, 8)],
    remote: { address: pair.region.iova + 8192n, rkey },
  });

  for (const type of [1, 2] as const) {
    it(`type ${type}: the key is the window's when the bind is done, not before`, () => {
      pair.setMode(Mode.MANUAL);
      const window = pair.device.createMemoryWindow(pair.pd, type);
      const before = window.rkey;
      const rkey = nextRkey(before);
      postSends(pair.b, bind(window, rkey));
      assert.equal(window.rkey, before);
      pair.progress();
      assert.equal(window.rkey, before, 'done, but nobody has polled');
      const [done] = drain(pair.queues['send B']);
      assert.deepEqual([done?.status, done?.opcode], [SUCCESS, WcOpcode.BIND_MW]);
      assert.equal(window.rkey, rkey);
      postSends(pair.a, write(rkey));
      pair.progress();
      assert.deepEqual(outcomes(drain(pair.queues['send A'])), [[0, SUCCESS]]);
      assert.throws(() => pair.region.destroy(), { code: 'EBUSY' });
      window.destroy();
    });

    it(`type ${type}: an unsignalled bind completes for nobody, and is known all the same`, () => {
      const window = pair.device.createMemoryWindow(pair.pd, type);
      const rkey = nextRkey(window.rkey);
      postSends(pair.b, bind(window, rkey, 64n, 0));
      assert.deepEqual(drain(pair.queues['send B']), []);
      assert.equal(window.rkey, rkey);
      window.destroy();
    });

    it(`type ${type}: a bind that is flushed leaves the window its key`, () => {
      pair.setMode(Mode.MANUAL);
      const window = pair.device.createMemoryWindow(pair.pd, type);
      const before = window.rkey;
      const wrong = { ...write(1), remote: { address: 0n, rkey: 1 } };
      postSends(pair.b, wrong, bind(window, nextRkey(before)));
      pair.progress();
      assert.deepEqual(outcomes(drain(pair.queues['send B'])), [
        [0, REM_ACCESS_ERR],
        [1, WR_FLUSH_ERR],
      ]);
      assert.equal(window.rkey, before);
      postSends(pair.a, bind(window, nextRkey(before)));
      pair.progress();
      drain(pair.queues['send A']);
      window.destroy();
    });
  }

  it('type 2: bound, invalidated and bound again in one burst', () => {
    const window = pair.device.createMemoryWindow(pair.pd, 2);
    const first = nextRkey(window.rkey);
    const second = nextRkey(first);
    postSends(
      pair.b,
      bind(window, first, 64n, 0),
      { opcode: WrOpcode.LOCAL_INV, extra: first, flags: WrFlags.FENCE },
      bind(window, second),
    );
    assert.deepEqual(outcomes(drain(pair.queues['send B'])), [[2, SUCCESS]]);
    assert.equal(window.rkey, second);
    postSends(pair.a, write(second), write(first));
    assert.deepEqual(outcomes(drain(pair.queues['send A'])), [
      [0, SUCCESS],
      [1, REM_ACCESS_ERR],
    ]);
    window.destroy();
  });

  it('type 2: bound where a request with an immediate was before', () => {
    const window = pair.device.createMemoryWindow(pair.pd, 2);
    const rkey = nextRkey(window.rkey);
    const { SEND_WITH_IMM } = WrOpcode;
    const sends = Array.from({ length: 4 }, () => ({ opcode: SEND_WITH_IMM, extra: 0x01020304 }));
    postReceives(pair.a, [], [], [], []);
    postSends(pair.b, ...sends);
    drain(pair.queues['send B']);
    postSends(pair.b, bind(window, rkey));
    assert.deepEqual(outcomes(drain(pair.queues['send B'])), [[4, SUCCESS]]);
    assert.equal(window.rkey, rkey);
    window.destroy();
  });

  it('type 1: bound anew, and unbound with length 0, in one burst with other requests', () => {
    const window = pair.device.createMemoryWindow(pair.pd, 1);
    const first = nextRkey(window.rkey);
    const second = nextRkey(first);
    const third = nextRkey(second);
    const local = { ...write(pair.region.rkey), flags: WrFlags.SIGNALED };
    postSends(pair.b, local, bind(window, first), local, bind(window, second), local);
    assert.deepEqual(
      outcomes(drain(pair.queues['send B'])),
      [0, 1, 2, 3, 4].map((i) => [i, SUCCESS]),
    );
    postSends(pair.b, bind(window, third, 0n));
    assert.deepEqual(outcomes(drain(pair.queues['send B'])), [[5, SUCCESS]]);
    assert.equal(window.rkey, third);
    window.destroy();
  });

  it('type 1: a key that the driver would not give is refused in its place', () => {
    const window = pair.device.createMemoryWindow(pair.pd, 1);
    const before = window.rkey;
    postSends(pair.b, bind(window, (before & ~0xff) | ((before + 2) & 0xff)));
    assert.deepEqual(outcomes(drain(pair.queues['send B'])), [[0, LOC_QP_OP_ERR]]);
    assert.equal(window.rkey, before);
    window.destroy();
  });

  it('a driver that refuses the bind leaves all as it was', () => {
    for (const [type, call] of [
      [1, 'ibv_bind_mw'],
      [2, 'ibv_post_send'],
    ] as const) {
      const fresh = new Pair();
      const window = fresh.device.createMemoryWindow(fresh.pd, type);
      const before = window.rkey;
      fake.inject(call, 1, 12);
      postSends(fresh.b, {
        ...bind(window, nextRkey(before)),
        bind: { ...bindOf(fresh, window), rkey: nextRkey(before) },
      });
      assert.deepEqual(outcomes(drain(fresh.queues['send B'])), [[0, LOC_QP_OP_ERR]]);
      assert.equal(window.rkey, before);
      window.destroy();
      void fresh.close();
    }
  });

  function bindOf(of: Pair, window: MemoryWindow): NonNullable<Send['bind']> {
    return {
      address: of.region.iova,
      length: 8n,
      window: window.handle,
      regionLkey: of.region.lkey,
      access: 0,
      rkey: 0,
    };
  }

  it('is of one of two types', () => {
    assert.throws(() => pair.device.createMemoryWindow(pair.pd, 3 as never), { code: 'EINVAL' });
  });
});
