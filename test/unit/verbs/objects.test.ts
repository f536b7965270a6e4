// docs/spi.md, "Rings and doorbells" and "Who may call what": completion queues that are full,
// receives that wait or are shared, and calls that throw.

import assert from 'node:assert/strict';
import { constants } from 'node:os';
import { QpState, WrOpcode } from '../../../core/spi/wire/ib.js';
import { SpiError } from '../../../core/spi/errors/spi-error.js';
import { Mode } from '../../fake-verbs/control.js';
import { Pair, type PairOptions } from '../../fake-verbs/pair.js';
import {
  drain,
  postReceives,
  postSends,
  read,
  type Send,
  writeReceive,
} from '../../fake-verbs/work.js';

const { EINVAL, ENOMEM, EIO } = constants.errno;

describe('verbs: completion queues, receives, objects', () => {
  let pair: Pair;
  const start = (options: PairOptions = {}): Pair => (pair = new Pair(options));
  afterEach(() => pair.close());

  const write = (flags = 0): Send => ({
    opcode: WrOpcode.RDMA_WRITE,
    flags,
    segments: [pair.at(0, 8)],
    remote: pair.remote(1024),
  });
  const SIGNALED = 2;

  describe('completion queues', () => {
    it('keeps what the ring has no room for until core has read', () => {
      start({ cqEntries: 4, maxSendWr: 8 });
      postSends(pair.a, write(SIGNALED), write(SIGNALED), write(SIGNALED));
      const cq = pair.queues['send A'];
      assert.equal(cq.poll(), 3);
      postSends(pair.a, write(SIGNALED), write(SIGNALED), write(SIGNALED));
      assert.equal(cq.poll(), 4, 'the ring is full: two wait in the driver');
      assert.equal(cq.poll(), 4);
      const { words } = cq.ring;
      const before = words.slice();
      cq.poll();
      assert.deepEqual(words, before, 'entries stay until the consumer has advanced');
      assert.deepEqual(
        read(cq.ring).map((c) => c.index),
        [0, 1, 2, 3],
      );
      assert.deepEqual(
        drain(cq).map((c) => c.index),
        [4, 5],
      );
    });

    it('is never silent about an overrun', async () => {
      start({ cqEntries: 4, maxSendWr: 8 });
      postSends(pair.a, ...[0, 1, 2, 3, 4].map(() => write(SIGNALED)));
      assert.deepEqual(pair.events, [], 'nobody is called inside the doorbell');
      await new Promise(setImmediate);
      assert.deepEqual(pair.events, [['send A', 0]]);
      assert.equal(pair.a.state, QpState.ERR);
      assert.equal(pair.b.state, QpState.RTS);
      assert.equal(drain(pair.queues['send A']).length, 4);
    });

    it('moves unread completions over when resized, in order', () => {
      start({ cqEntries: 4 });
      const cq = pair.queues['send A'];
      postSends(pair.a, write(SIGNALED), write(SIGNALED), write(SIGNALED));
      assert.equal(cq.poll(), 3);
      assert.throws(() => cq.resize(2), { code: 'EINVAL' });
      cq.resize(16);
      postSends(pair.a, write(SIGNALED));
      assert.equal(cq.poll(), 4);
      assert.deepEqual(
        read(cq.ring).map((c) => c.index),
        [0, 1, 2, 3],
      );
    });

    it('throws EIO when the driver cannot be polled, ENODEV when it cannot be armed', () => {
      start();
      pair.fake.inject('ibv_poll_cq', 1, EIO);
      assert.throws(() => pair.queues['send A'].poll(), { code: 'EIO' });
      pair.fake.inject('ibv_req_notify_cq', 1, constants.errno.ENODEV);
      assert.throws(() => pair.queues['send A'].arm(false), { code: 'ENODEV' });
    });
  });

  describe('receives', () => {
    it('holds a send until there is a receive for it (RNR), and all behind it', () => {
      start({ mode: Mode.MANUAL });
      postSends(pair.a, { opcode: WrOpcode.SEND, segments: [pair.at(0, 8)] }, write(SIGNALED));
      assert.equal(pair.progress(), 0);
      assert.deepEqual(drain(pair.queues['send A']), []);
      postReceives(pair.b, [pair.at(512, 8)]);
      assert.equal(pair.progress(), 2);
      assert.equal(drain(pair.queues['send A']).length, 2);
    });

    it('frees the slots of a shared queue one by one, in any order', async () => {
      start({ srqWr: 8 });
      const third = pair.device.createQueuePair({ ...pair.initOf('B', pair.srq), context: 3 });
      const { slots, submissions } = pair.srq!.ring;
      const submit = (...order: number[]): void => {
        for (const slot of order) {
          writeReceive(slots, slot, [pair.at(512 + slot * 16, 16)], BigInt(100 + slot));
          submissions.words[submissions.wordOf(submissions.producer)] = slot;
          submissions.producer += 1;
        }
        pair.srq!.ringDoorbell();
      };
      pair.srq!.setLimit(2);
      submit(5, 0, 7);
      assert.equal(submissions.consumer, 3);
      const send = { opcode: WrOpcode.SEND, segments: [pair.at(0, 3)] };
      postSends(pair.a, send, send);
      const got = drain(pair.queues['receive B']);
      assert.deepEqual(
        got.map((c) => [c.index, c.cookie]),
        [
          [5, 105n],
          [0, 100n],
        ],
      );
      assert.ok(got.every((c) => c.srqn === pair.srq!.srqn && c.qpn === pair.b.qpn));
      // Slots 5 and 0 are free while 7 is not; slot 3 was never used.
      submit(0, 3);
      postSends(pair.a, send, send, send);
      assert.deepEqual(
        drain(pair.queues['receive B']).map((c) => c.index),
        [7, 0, 3],
      );
      await new Promise(setImmediate);
      assert.deepEqual(pair.events, [['srq', 15]]);
      third.destroy();
    });

    it('does not flush a shared queue, and keeps a refused slot in the submissions', () => {
      start({ srqWr: 4 });
      const { slots, submissions } = pair.srq!.ring;
      for (const slot of [2, 1]) {
        writeReceive(slots, slot, []);
        submissions.words[submissions.wordOf(submissions.producer)] = slot;
        submissions.producer += 1;
      }
      pair.fake.inject('ibv_post_srq_recv', 2, ENOMEM);
      assert.throws(() => pair.srq!.ringDoorbell(), { code: 'ENOMEM' });
      assert.equal(submissions.consumer, 1);
      pair.srq!.ringDoorbell();
      assert.equal(submissions.consumer, 2);
      pair.b.modify({ state: QpState.ERR });
      assert.deepEqual(drain(pair.queues['receive B']), []);
    });
  });

  describe('objects', () => {
    it('stay while others need them', () => {
      start();
      const busy = { name: 'SpiError', code: 'EBUSY' };
      assert.throws(() => pair.queues['send A'].destroy(), busy);
      assert.throws(() => pair.pd.destroy(), busy);
    });

    it('are driven by nobody, and end once', async () => {
      start();
      assert.equal(pair.device.progress(), false, 'hardware needs no driving');
      await pair.close();
      await pair.device.close();
      start();
    });

    it('fail with the errno of the call, as SpiError', () => {
      start();
      const failing: [string, () => unknown][] = [
        ['ibv_alloc_pd', () => pair.device.createProtectionDomain()],
        ['ibv_reg_mr', () => pair.pd.registerMemory(new Uint8Array(8), 0)],
        ['ibv_create_cq', () => pair.device.createCompletionQueue(pair.cqInitOf('send A'))],
        ['ibv_create_qp', () => pair.device.createQueuePair(pair.initOf('A', undefined))],
        ['ibv_resize_cq', () => pair.queues['send A'].resize(8)],
        ['ibv_destroy_qp', () => pair.a.destroy()],
        ['ibv_dereg_mr', () => pair.region.destroy()],
        ['ibv_alloc_mw', () => pair.device.createMemoryWindow(pair.pd, 2)],
      ];
      for (const [name, call] of failing) {
        assert.equal(pair.fake.inject(name, 1, ENOMEM), 0, name);
        assert.throws(call, (error) => error instanceof SpiError && error.code === 'ENOMEM', name);
      }
      assert.equal(pair.fake.inject('ibv_no_such_call', 1, EIO), EINVAL);
    });

    it('registers at an iova that agrees with the page of the memory, or not at all', () => {
      start();
      const memory = new Uint8Array(64);
      const region = pair.pd.registerMemory(memory, 0);
      const offset = region.iova % 4096n;
      region.destroy();
      const moved = pair.pd.registerMemory(memory, 0, 0x10000n + offset);
      assert.equal(moved.iova, 0x10000n + offset);
      moved.destroy();
      assert.throws(() => pair.pd.registerMemory(memory, 0, 0x10000n + offset + 8n), {
        code: 'EINVAL',
      });
    });
  });
});
