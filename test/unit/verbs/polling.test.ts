// How a consumer learns of completions: by the device, by bounded polling, by dequeueing alone; and
// of a device that has gone.

import assert from 'node:assert/strict';
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises';
import { AsyncEventType, QpState, WcStatus, WrOpcode } from '../../../core/spi/wire/ib.js';
import { BoundedPolling } from '../../../providers/verbs/objects/bounded-polling.js';
import { fakeVerbs, Mode } from '../../fake-verbs/control.js';
import { Pair } from '../../fake-verbs/pair.js';
import { addSend, drain, postReceives, postSends, read, type Send } from '../../fake-verbs/work.js';

describe('verbs: polling', () => {
  const fake = fakeVerbs();
  let pair: Pair;
  const write = (): Send => ({
    opcode: WrOpcode.RDMA_WRITE,
    segments: [pair.at(0, 8)],
    remote: pair.remote(1024),
  });
  beforeEach(() => (pair = new Pair({ mode: Mode.MANUAL })));
  afterEach(async () => {
    fake.restore();
    await pair.device.close();
    fake.clearInjections();
  });

  const complete = (): void => {
    postSends(pair.a, write());
    pair.progress();
  };
  /** Until a condition holds; the machine may be busy. */
  const until = async (condition: () => boolean): Promise<void> => {
    for (let i = 0; i < 500 && !condition(); i++) await sleep(2);
    assert.ok(condition());
  };

  it('event: every notification is asked of the device', async () => {
    const cq = pair.queues['send A'];
    fake.calls('ibv_req_notify_cq');
    complete();
    assert.equal(drain(cq).length, 1);
    cq.arm(false);
    assert.equal(fake.calls('ibv_req_notify_cq'), 1);
    complete();
    await until(() => pair.notified.length === 1);
  });

  it('adaptive: it is tried whether looking after activity is faster than the device', async () => {
    const cq = pair.queues['send A'];
    cq.setPolling('adaptive');
    fake.calls('ibv_req_notify_cq');
    let asked = 0;
    let round = 0;
    const looked = (): boolean => asked < round;
    for (const endMs = Date.now() + 5000; !looked() && Date.now() < endMs;) {
      complete();
      assert.equal(drain(cq).length, 1);
      cq.arm(false);
      // Activity was a moment ago: this one is looked for, where that is tried.
      postSends(pair.a, write());
      pair.progress();
      round += 1;
      // Completions come soon: those of a slow rate are left to the device.
      while (pair.notified.length < round && Date.now() < endMs) await turn();
      assert.equal(drain(cq).length, 1);
      asked = fake.calls('ibv_req_notify_cq');
    }
    assert.ok(round > 8, 'the device is asked at first');
    assert.ok(looked(), `${String(asked)} of ${String(round)}`);
  });

  it('adaptive: an idle queue is left to the device, which still notifies', async () => {
    const cq = pair.queues['send A'];
    cq.setPolling('adaptive');
    complete();
    assert.equal(drain(cq).length, 1);
    fake.calls('ibv_req_notify_cq');
    cq.arm(false);
    await until(() => fake.calls('ibv_req_notify_cq') === 1);
    const polls = fake.calls('ibv_poll_cq');
    await sleep(30);
    assert.equal(fake.calls('ibv_poll_cq'), polls, 'nobody looks any more');
    assert.deepEqual(pair.notified, []);
    complete();
    await until(() => pair.notified.length === 1);
    assert.equal(drain(cq).length, 1);
  });

  it('adaptive: what comes between the last look and arming is not lost', async () => {
    pair.setMode(Mode.THREAD);
    const cq = pair.queues['send A'];
    cq.setPolling('adaptive');
    let seen = 0;
    pair.onNotify = (role) => {
      if (role !== 'send A') return;
      seen += drain(cq).length;
      cq.arm(false);
      seen += drain(cq).length;
    };
    cq.arm(false);
    for (let i = 1; i <= 300; i++) {
      postSends(pair.a, write());
      await until(() => seen === i);
    }
  });

  it('a change of mode, and the end of the queue, leave nobody waiting', async () => {
    const cq = pair.queues['send A'];
    cq.setPolling('adaptive');
    complete();
    drain(cq);
    cq.arm(false);
    fake.calls('ibv_req_notify_cq');
    cq.setPolling('event');
    assert.equal(fake.calls('ibv_req_notify_cq'), 1, 'handed over at once');
    complete();
    await until(() => pair.notified.length === 1);
    const extra = pair.device.createCompletionQueue(pair.cqInitOf('receive A'));
    extra.setPolling('adaptive');
    extra.arm(false);
    extra.destroy();
    await sleep(5);
  });

  it('solicited notifications are always the device’s', () => {
    const cq = pair.queues['receive B'];
    cq.setPolling('adaptive');
    postReceives(pair.b, []);
    postSends(pair.a, { opcode: WrOpcode.SEND, segments: [] });
    pair.progress();
    assert.equal(drain(cq).length, 1);
    fake.calls('ibv_req_notify_cq');
    cq.arm(true);
    assert.equal(fake.calls('ibv_req_notify_cq'), 1);
  });

  it('spin: progress brings completions into their rings, and calls nobody', () => {
    const cq = pair.queues['send A'];
    cq.setPolling('spin');
    cq.arm(false);
    assert.equal(pair.device.progress(), false);
    complete();
    assert.equal(pair.device.progress(), true);
    assert.deepEqual(pair.notified, []);
    assert.equal(read(cq.ring).length, 1, 'without polling');
    assert.equal(pair.device.progress(), false);
  });

  describe('a device that goes', () => {
    it('says so, flushes what it can, and then throws EIO', async () => {
      const events: number[] = [];
      pair.device.setEventHandler((event) => events.push(event));
      postSends(pair.a, write());
      fake.removeDevice('fake0', 1);
      await until(() => events.length > 0);
      assert.deepEqual(events, [AsyncEventType.DEVICE_FATAL]);
      assert.ok(pair.device.gone);
      pair.progress();
      assert.equal(drain(pair.queues['send A'])[0]?.status, WcStatus.WR_FLUSH_ERR);
      addSend(pair.a.sendRing, write());
      assert.throws(() => pair.a.ringSendDoorbell(), { name: 'SpiError', code: 'EIO' });
      assert.throws(() => pair.queues['send A'].arm(false), { code: 'EIO' });
      assert.throws(() => pair.device.createProtectionDomain(), { code: 'EIO' });
      assert.throws(() => pair.a.modify({ state: QpState.ERR }), { code: 'EIO' });
    });

    it('still lets go of everything', async () => {
      fake.removeDevice('fake0', 0);
      await sleep(5);
      await pair.device.close();
      assert.equal(fake.objects(), 0);
    });

    it('notifies a consumer that is looked for, who finds out by arming', async () => {
      const cq = pair.queues['send A'];
      let notified = 0;
      const queue = { hasArrived: () => false, arm: () => false, notify: () => (notified += 1) };
      const polling = new BoundedPolling(queue, {
        pays: true,
        pollUs: 200,
        onCompletions: () => undefined,
      });
      polling.setMode('adaptive');
      polling.active();
      assert.ok(polling.takesOver());
      await until(() => notified > 0);
      fake.removeDevice('fake0', 0);
      assert.throws(() => cq.arm(false), { code: 'EIO' });
      assert.deepEqual(drain(cq), [], 'its memory is still there to be looked at');
    });
  });
});
