// docs/spi.md, "Who may call what, when": polling and arming never call back, arming is one-shot
// and edge-triggered, and "drain, arm, look once more" loses nothing while another thread completes
// requests. That order is needed: without the last look events are lost, and a test shows it.

import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { QpState, WrFlags, WrOpcode, WcStatus } from '../../../core/spi/wire/ib.js';
import { CQE } from '../../../core/spi/layout/ring.js';
import { Mode } from '../../fake-verbs/control.js';
import { Pair, type PairOptions } from '../../fake-verbs/pair.js';
import { addSend, drain, postReceives, postSends, type Send } from '../../fake-verbs/work.js';
import { patience } from '../../support/patience.js';

/** Long enough for a notification that is under way; none is, when a test expects none. */
const settle = (): Promise<void> => sleep(20);

describe('verbs: notification', () => {
  let pair: Pair;
  const start = (options: PairOptions = {}): Pair => (pair = new Pair(options));
  afterEach(() => pair.close());

  const write = (): Send => ({
    opcode: WrOpcode.RDMA_WRITE,
    segments: [pair.at(0, 8)],
    remote: pair.remote(1024),
  });
  const send = (flags: number = WrFlags.SIGNALED): Send => ({
    opcode: WrOpcode.SEND,
    flags,
    segments: [pair.at(0, 8)],
  });

  it('never comes from poll, from arm, or from a doorbell', async () => {
    start();
    const cq = pair.queues['send A'];
    let inside = false;
    const calls: boolean[] = [];
    pair.onNotify = () => calls.push(inside);
    inside = true;
    cq.arm(false);
    postSends(pair.a, write(), write());
    cq.arm(false);
    cq.poll();
    cq.arm(true);
    inside = false;
    await settle();
    // The notification of the first arm, and only that: the second found nothing new.
    assert.deepEqual(calls, [false]);
  });

  it('does not come without arm', async () => {
    start();
    postSends(pair.a, write());
    await settle();
    assert.deepEqual(pair.notified, []);
    assert.equal(drain(pair.queues['send A']).length, 1);
  });

  it('is one-shot, and an edge: what waits already does not fire it', async () => {
    start();
    const cq = pair.queues['send A'];
    postSends(pair.a, write());
    cq.arm(false);
    await settle();
    assert.deepEqual(pair.notified, []);
    postSends(pair.a, write(), write());
    await settle();
    assert.deepEqual(pair.notified, ['send A']);
    postSends(pair.a, write());
    await settle();
    assert.deepEqual(pair.notified, ['send A'], 'once');
    assert.equal(drain(cq).length, 4);
  });

  it('may find nothing, when poll has brought the completion before', async () => {
    start();
    const found: number[] = [];
    const cq = pair.queues['send A'];
    pair.onNotify = () => found.push(cq.poll());
    cq.arm(false);
    postSends(pair.a, write());
    assert.equal(drain(cq).length, 1);
    await settle();
    assert.deepEqual(found, [0]);
  });

  it('waits for a solicited or failed completion when told so', async () => {
    start();
    const cq = pair.queues['receive B'];
    postReceives(pair.b, [pair.at(512, 8)], [pair.at(512, 8)], [pair.at(512, 8)]);
    cq.arm(true);
    postSends(pair.a, send());
    await settle();
    assert.deepEqual(pair.notified, []);
    postSends(pair.a, send(WrFlags.SIGNALED | WrFlags.SOLICITED));
    await settle();
    assert.deepEqual(pair.notified, ['receive B']);
    cq.arm(true);
    pair.b.modify({ state: QpState.ERR });
    await settle();
    assert.deepEqual(pair.notified, ['receive B', 'receive B']);
    const statuses = drain(cq).map((c) => c.status);
    assert.deepEqual(statuses, [WcStatus.SUCCESS, WcStatus.SUCCESS, WcStatus.WR_FLUSH_ERR]);
  });

  it('is widened by arming again, never narrowed', async () => {
    start();
    const cq = pair.queues['receive B'];
    postReceives(pair.b, [pair.at(512, 8)], [pair.at(512, 8)]);
    cq.arm(true);
    cq.arm(false);
    cq.arm(true);
    postSends(pair.a, send());
    await settle();
    assert.deepEqual(pair.notified, ['receive B']);
  });

  it('survives a handler that throws, and one that destroys its queue', async () => {
    start();
    const extra = pair.device.createCompletionQueue(pair.cqInitOf('send A'));
    const third = pair.device.createQueuePair({ ...pair.initOf('A', undefined), sendCq: extra });
    pair.onNotify = () => {
      third.destroy();
      extra.destroy();
      throw new Error('from a handler');
    };
    extra.arm(false);
    third.modify({ state: QpState.INIT, pkeyIndex: 0, portNumber: 1, accessFlags: 0 });
    third.modify({ state: QpState.ERR });
    postSends(third, write());
    await settle();
    assert.equal(pair.thrown.length, 1);
    pair.onNotify = (role) => void pair.notified.push(role);
    pair.queues['send A'].arm(false);
    postSends(pair.a, write());
    await settle();
    assert.deepEqual(pair.notified, ['send A']);
  });

  describe('while a thread completes requests', () => {
    const DEPTH = 256;
    const BURST = 32;

    /** Word i of the source holds the number of the send that will carry it. */
    const numbered = (index: number, source: Uint32Array): Send => {
      const word = index % DEPTH;
      source[word] = index;
      return {
        opcode: WrOpcode.RDMA_WRITE,
        segments: [pair.at(word * 4, 4)],
        remote: pair.remote(8192 + word * 4),
      };
    };

    it('loses nothing in 100,000 completions; the bytes are there before each', async function () {
      this.timeout(600_000); // a stall is found by the watchdog, however busy the machine is
      const TOTAL = 100_000;
      start({ mode: Mode.THREAD, maxSendWr: DEPTH, cqEntries: DEPTH });
      const source = new Uint32Array(pair.memory.buffer, 0, DEPTH);
      const target = new Uint32Array(pair.memory.buffer, 8192, DEPTH);
      const cq = pair.queues['send A'];
      const { sendRing } = pair.a;
      let posted = 0;
      let done = 0;
      let notifications = 0;
      const post = (): void => {
        while (posted < TOTAL && posted - done <= DEPTH - BURST) {
          for (let i = 0; i < BURST && posted < TOTAL; i++) {
            addSend(sendRing, numbered(posted++, source));
          }
          pair.a.ringSendDoorbell();
        }
      };
      const take = (): void => {
        for (let n = cq.poll(); n > 0; n = cq.poll()) {
          for (; n > 0; n--, done++) {
            const at = cq.ring.wordOf(cq.ring.consumer);
            const index = cq.ring.words[at + CQE.WQE_INDEX] ?? -1;
            assert.equal(index, done);
            assert.equal((cq.ring.words[at + CQE.CONTROL] ?? 0) & 0xff, WcStatus.SUCCESS);
            assert.equal(target[index % DEPTH], index, 'placed before its completion');
            cq.ring.consumer += 1;
          }
          post();
        }
      };
      await new Promise<void>((resolve, reject) => {
        const fail = (why: string): void => {
          clearInterval(watchdog);
          reject(new Error(`${why}: ${done} of ${TOTAL}`));
        };
        let seen = 0;
        const watchdog = setInterval(() => {
          if (done === seen) fail('stalled');
          seen = done;
        }, 20_000);
        pair.onNotify = () => {
          notifications++;
          try {
            take();
            cq.arm(false);
            take(); // the look that finds what came between
          } catch (error) {
            fail(String(error));
          }
          if (done < TOTAL) return;
          clearInterval(watchdog);
          resolve();
        };
        cq.arm(false);
        post();
      });
      assert.equal(done, TOTAL);
      assert.ok(notifications > 1, `${notifications} notifications`);
    });

    /**
     * One round of the order under test: posts a burst and waits for all of it by notification
     * alone. False when it stalls with completions that nobody was told of.
     */
    const round = async (looksOnceMore: boolean): Promise<boolean> => {
      const cq = pair.queues['send A'];
      let left = 32;
      const take = (): void => void (left -= drain(cq).length);
      let wake: () => void = () => undefined;
      pair.onNotify = () => {
        take();
        // A consumer that does a little work between the two: the thread adds completions here.
        const until = performance.now() + 0.3;
        while (performance.now() < until);
        cq.arm(false);
        if (looksOnceMore) take();
        if (left === 0) wake();
      };
      const finished = new Promise<true>((resolve) => (wake = () => resolve(true)));
      cq.arm(false);
      postSends(pair.a, ...Array.from({ length: left }, write));
      // Seconds where a stall is a failure, so that a busy machine is not taken for one.
      const waitMs = looksOnceMore ? patience(10_000) : 500;
      const late = sleep(waitMs, false, { ref: !looksOnceMore });
      const inTime = await Promise.race([finished, late]);
      if (inTime) return true;
      const forgotten = drain(cq).length;
      assert.equal(forgotten, left, 'they were all there, and no notification came');
      assert.ok(forgotten > 0);
      return false;
    };

    /** A completion every 80 us or so, which is often within the 300 us of a handler. */
    const startPaced = (): void => {
      start({ mode: Mode.THREAD, maxSendWr: 32 });
      pair.fake.setPace(20);
    };

    it('needs the last look: without it completions are left lying', async () => {
      startPaced();
      let stalled = 0;
      for (let i = 0; i < 100 && stalled === 0; i++) if (!(await round(false))) stalled++;
      assert.equal(stalled, 1, 'the wrong order lost nothing in 100 rounds');
    });

    it('never stalls with it', async () => {
      startPaced();
      for (let i = 0; i < 100; i++) assert.ok(await round(true), `round ${i}`);
    });

    it('loses one for certain when it completes between drain and arm', async () => {
      start({ mode: Mode.MANUAL });
      const cq = pair.queues['send A'];
      postSends(pair.a, write());
      assert.equal(drain(cq).length, 0);
      pair.progress();
      cq.arm(false);
      await settle();
      assert.deepEqual(pair.notified, []);
      assert.equal(drain(cq).length, 1, 'the look finds it');
    });
  });
});
