// docs/spi.md, "Rings and doorbells": when entries may be written again, what a failed or refused
// one does, and in which order everything completes.

import assert from 'node:assert/strict';
import { constants } from 'node:os';
import { QpState, WcOpcode, WcStatus, WrOpcode } from '../../../core/spi/wire/ib.js';
import { Mode } from '../../fake-verbs/control.js';
import { Pair, type PairOptions } from '../../fake-verbs/pair.js';
import {
  addSend,
  type Completion,
  drain,
  postReceives,
  postSends,
  type Send,
} from '../../fake-verbs/work.js';

const { EINVAL, ENOMEM, EIO } = constants.errno;
const FLUSHED = WcStatus.WR_FLUSH_ERR;
const outcomes = (completions: readonly Completion[]): [number, number][] =>
  completions.map((c) => [c.index, c.status]);

describe('verbs: queues', () => {
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

  describe('reclaiming', () => {
    it('frees a run of unsignalled sends by the completion of a later one, as core counts', () => {
      start({ mode: Mode.MANUAL, maxSendWr: 8 });
      for (let i = 0; i < 7; i++) addSend(pair.a.sendRing, write());
      addSend(pair.a.sendRing, write(SIGNALED));
      pair.a.ringSendDoorbell();
      assert.equal(pair.a.sendRing.consumer, 8, 'all were fetched, none is free');
      assert.equal(pair.progress(7), 7);
      assert.deepEqual(drain(pair.queues['send A']), [], 'seven are done and nobody can know');
      assert.equal(pair.progress(1), 1);
      assert.deepEqual(outcomes(drain(pair.queues['send A'])), [[7, WcStatus.SUCCESS]]);
      // Free up to WQE_INDEX: eight more go in at once, over the same slots.
      for (let i = 0; i < 8; i++) addSend(pair.a.sendRing, write(SIGNALED));
      pair.a.ringSendDoorbell();
      assert.equal(pair.progress(), 8);
      assert.deepEqual(
        drain(pair.queues['send A']).map((c) => c.index),
        [8, 9, 10, 11, 12, 13, 14, 15],
      );
    });

    it('is full for the driver exactly when it is full for core', () => {
      // The ring has 8 entries, the driver's queue 6: core holds to what it asked for.
      start({ mode: Mode.MANUAL, maxSendWr: 6 });
      assert.equal(pair.a.sendRing.entries, 8);
      for (let i = 0; i < 6; i++) addSend(pair.a.sendRing, write(i === 2 ? SIGNALED : 0));
      pair.a.ringSendDoorbell();
      pair.progress();
      assert.equal(pair.a.state, QpState.RTS, 'six of six: not refused');
      // Executed, and in the driver's CQ; but a slot is free only when the completion is polled.
      addSend(pair.a.sendRing, write(SIGNALED));
      assert.deepEqual(
        drain(pair.queues['send A']).map((c) => c.index),
        [2],
      );
      addSend(pair.a.sendRing, write());
      addSend(pair.a.sendRing, write(SIGNALED));
      pair.a.ringSendDoorbell();
      pair.progress();
      assert.deepEqual(outcomes(drain(pair.queues['send A'])), [
        [6, WcStatus.SUCCESS],
        [8, WcStatus.SUCCESS],
      ]);
    });

    it('refuses with ENOMEM at the moment core would, and still completes all in order', () => {
      start({ mode: Mode.MANUAL, maxSendWr: 6 });
      for (let i = 0; i < 7; i++) addSend(pair.a.sendRing, write(SIGNALED));
      pair.a.ringSendDoorbell();
      assert.equal(pair.a.sendRing.consumer, 6, 'the driver took six');
      assert.equal(pair.a.state, QpState.ERR);
      pair.progress();
      // Polling frees the driver's slots, the seventh takes one, and is flushed after them.
      const first = drain(pair.queues['send A']);
      pair.progress();
      const all = [...first, ...drain(pair.queues['send A'])];
      assert.deepEqual(outcomes(all), [
        ...[0, 1, 2, 3, 4, 5].map((i) => [i, FLUSHED]),
        [6, WcStatus.LOC_QP_OP_ERR],
      ]);
      assert.equal(all.at(-1)?.vendorError, ENOMEM);
    });

    it('has no slot free for a send that is done but whose completion is not polled', () => {
      start({ mode: Mode.MANUAL, maxSendWr: 6 });
      for (let i = 0; i < 6; i++) addSend(pair.a.sendRing, write(i === 2 ? SIGNALED : 0));
      pair.a.ringSendDoorbell();
      assert.equal(pair.progress(), 6);
      addSend(pair.a.sendRing, write());
      pair.a.ringSendDoorbell();
      assert.equal(pair.a.sendRing.consumer, 6, 'core would have refused it as well');
      const first = drain(pair.queues['send A']);
      pair.progress();
      // 3, 4 and 5 have succeeded unsignalled: nothing tells, but for the one behind them.
      assert.deepEqual(outcomes([...first, ...drain(pair.queues['send A'])]), [
        [2, WcStatus.SUCCESS],
        [6, WcStatus.LOC_QP_OP_ERR],
      ]);
    });

    it('frees receives by their completion', () => {
      start({ maxReceiveWr: 4 });
      for (let round = 0; round < 5; round++) {
        postReceives(pair.b, ...[1, 2, 3, 4].map(() => [pair.at(512, 8)]));
        postSends(
          pair.a,
          ...[1, 2, 3, 4].map(() => ({ opcode: WrOpcode.SEND, segments: [pair.at(0, 8)] })),
        );
        assert.equal(drain(pair.queues['send A']).length, 4);
        const got = drain(pair.queues['receive B']);
        assert.deepEqual(
          got.map((c) => [c.index, c.cookie, c.status]),
          [0, 1, 2, 3].map((i) => [round * 4 + i, BigInt(round * 4 + i), WcStatus.SUCCESS]),
        );
      }
    });
  });

  describe('failures', () => {
    it('completes a failed unsignalled send, then flushes sends and receives in order', () => {
      start({ mode: Mode.MANUAL });
      postReceives(pair.a, [], [], []);
      const wrong = { ...write(), remote: { address: pair.region.iova, rkey: 0xbad } };
      postSends(pair.a, write(), wrong, write(), write(SIGNALED), write());
      pair.progress();
      const sent = drain(pair.queues['send A']);
      assert.deepEqual(outcomes(sent), [
        [1, WcStatus.REM_ACCESS_ERR],
        [2, FLUSHED],
        [3, FLUSHED],
        [4, FLUSHED],
      ]);
      assert.ok(sent.every((c) => c.opcode === WcOpcode.RDMA_WRITE && c.byteLength === 0));
      assert.ok(sent.every((c) => c.flags === 0 && c.extra === 0 && c.vendorError > 0));
      const received = drain(pair.queues['receive A']);
      assert.deepEqual(
        received.map((c) => [c.index, c.status, c.opcode]),
        [0, 1, 2].map((i) => [i, FLUSHED, WcOpcode.RECV]),
      );
      // And what is posted later, signalled or not.
      postSends(pair.a, write(), write(SIGNALED));
      postReceives(pair.a, []);
      pair.progress();
      assert.deepEqual(outcomes(drain(pair.queues['send A'])), [
        [5, FLUSHED],
        [6, FLUSHED],
      ]);
      assert.deepEqual(outcomes(drain(pair.queues['receive A'])), [[3, FLUSHED]]);
    });

    for (const nth of [1, 3, 5]) {
      it(`completes a send that the driver refuses, number ${nth} of 5, in ring order`, () => {
        start({ mode: Mode.MANUAL });
        assert.equal(pair.fake.inject('ibv_post_send', nth, EINVAL), 0);
        postSends(pair.a, write(), write(SIGNALED), write(), write(), write(SIGNALED));
        assert.equal(pair.a.sendRing.consumer, 5, 'the doorbell took all and threw nothing');
        assert.equal(pair.a.state, QpState.ERR);
        pair.progress();
        const done = drain(pair.queues['send A']);
        assert.deepEqual(
          outcomes(done),
          [0, 1, 2, 3, 4].map((i) => [i, i === nth - 1 ? WcStatus.LOC_QP_OP_ERR : FLUSHED]),
        );
        assert.equal(done[nth - 1]?.vendorError, EINVAL);
        assert.equal(done[nth - 1]?.opcode, WcOpcode.RDMA_WRITE);
        assert.equal(done[nth - 1]?.cookie, BigInt(nth - 1));
      });
    }

    it('lets earlier sends succeed, and be counted, before a refused one', () => {
      start();
      pair.fake.inject('ibv_post_send', 3, EINVAL);
      postSends(pair.a, write(), write());
      assert.deepEqual(drain(pair.queues['send A']), []);
      postSends(pair.a, write(), write(SIGNALED));
      assert.deepEqual(outcomes(drain(pair.queues['send A'])), [
        [2, WcStatus.LOC_QP_OP_ERR],
        [3, FLUSHED],
      ]);
    });

    it('completes in error what has no meaning: an unknown opcode, an unknown window', () => {
      start();
      postSends(pair.a, { opcode: 99 });
      assert.deepEqual(outcomes(drain(pair.queues['send A'])), [[0, WcStatus.LOC_QP_OP_ERR]]);
      const bind = { address: 0n, length: 8n, window: 77, regionLkey: 1, access: 0, rkey: 1 };
      postSends(pair.b, { opcode: WrOpcode.BIND_MW, bind });
      const [done] = drain(pair.queues['send B']);
      assert.deepEqual([done?.status, done?.opcode], [WcStatus.LOC_QP_OP_ERR, WcOpcode.BIND_MW]);
    });

    it('completes a receive that the driver refuses, in ring order', () => {
      start();
      pair.fake.inject('ibv_post_recv', 2, ENOMEM);
      postReceives(pair.b, [], [], []);
      const done = drain(pair.queues['receive B']);
      assert.deepEqual(outcomes(done), [
        [0, FLUSHED],
        [1, WcStatus.LOC_QP_OP_ERR],
        [2, FLUSHED],
      ]);
      assert.equal(done[1]?.vendorError, ENOMEM);
    });

    it('throws EIO from a doorbell only when the device does not even flush', () => {
      start();
      pair.fake.inject('ibv_post_send', 1, EINVAL);
      pair.fake.inject('ibv_modify_qp', 1, EIO);
      addSend(pair.a.sendRing, write());
      assert.throws(() => pair.a.ringSendDoorbell(), { name: 'SpiError', code: 'EIO' });
    });

    it('reports errors of the responder on its side', async () => {
      start();
      postReceives(pair.b, [pair.at(512, 4)]);
      postSends(pair.a, { opcode: WrOpcode.SEND, segments: [pair.at(0, 8)] });
      assert.equal(drain(pair.queues['send A'])[0]?.status, WcStatus.REM_INV_REQ_ERR);
      assert.equal(drain(pair.queues['receive B'])[0]?.status, WcStatus.LOC_LEN_ERR);
    });
  });

  describe('states', () => {
    it('fetches nothing before RTS, and all of it when rung again', () => {
      start({ until: QpState.RTR });
      postSends(pair.a, write(SIGNALED));
      assert.equal(pair.a.sendRing.consumer, 0);
      assert.deepEqual([pair.a.state, drain(pair.queues['send A'])], [QpState.RTR, []]);
      for (const qp of [pair.a, pair.b]) {
        qp.modify({
          state: 3,
          timeout: 14,
          retryCount: 7,
          rnrRetryCount: 7,
          sendPsn: 0,
          maxRdAtomic: 1,
        });
      }
      assert.equal(pair.a.sendRing.consumer, 0, 'the transition itself posts nothing');
      pair.a.ringSendDoorbell();
      assert.deepEqual(outcomes(drain(pair.queues['send A'])), [[0, WcStatus.SUCCESS]]);
    });

    it('discards on RESET without completions; indices go on', () => {
      start({ mode: Mode.MANUAL });
      postSends(pair.a, write(SIGNALED), write(SIGNALED));
      pair.progress(1);
      pair.a.modify({ state: QpState.RESET });
      pair.progress();
      assert.deepEqual(drain(pair.queues['send A']), []);
      assert.deepEqual([pair.a.sendRing.producer, pair.a.sendRing.consumer], [2, 2]);
      postReceives(pair.a, []);
      assert.equal(pair.a.receiveRing?.consumer, 0, 'no receives in RESET');
      pair.a.modify({ state: QpState.INIT, pkeyIndex: 0, portNumber: 1, accessFlags: 0 });
      pair.a.modify({ state: QpState.ERR });
      postSends(pair.a, write());
      pair.progress();
      assert.deepEqual(outcomes(drain(pair.queues['send A'])), [[2, FLUSHED]]);
    });

    it('refuses a transition that the table does not allow', () => {
      start();
      assert.throws(() => pair.a.modify({ state: QpState.INIT }), { code: 'EINVAL' });
      assert.throws(() => pair.a.modify({ state: QpState.ERR, timeout: 1 }), { code: 'EINVAL' });
    });
  });
});
