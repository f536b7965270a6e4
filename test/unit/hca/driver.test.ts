import assert from 'node:assert/strict';
import { AsyncEventType, Timer, WrOpcode } from '../../../core/spi/index.js';
import {
  HcaPair,
  connect,
  connectedPair,
  drain,
  postReceive,
  postSend,
} from '../../support/hca-pair.js';

const send = { opcode: WrOpcode.SEND, segments: [{ offset: 0, length: 8 }] };

describe('Driver', () => {
  it('asks for a pump when a timer is started outside of one', () => {
    const pair = new HcaPair();
    const timer = new Timer(() => undefined);
    const { driver } = pair.a;
    driver.timers.start(timer, 5000);
    driver.timers.start(timer, 6000);
    assert.equal(pair.a.pumpRequests, 1);
    driver.pump();
    assert.equal(driver.nextDeadlineUs(), 6000);
    driver.timers.start(timer, 7000);
    assert.equal(pair.a.pumpRequests, 2);
  });

  it('runs handlers and tasks in the order of their causes', () => {
    const { pair, qpA, qpB } = connectedPair(21);
    const order: string[] = [];
    qpB.eventHandler = (event) => order.push(`event ${event}`);
    pair.b.driver.defer(() => {
      order.push('first');
      pair.b.driver.defer(() => order.push('last'));
    });
    postSend(pair.a, qpA, { opcode: WrOpcode.RDMA_WRITE, segments: [{ offset: 0, length: 8 }] });
    pair.a.driver.pump();
    pair.b.driver.pump();
    assert.deepEqual(order, ['first', `event ${AsyncEventType.QP_ACCESS_ERR}`, 'last']);
  });

  it('goes on after a port that took nothing, and keeps what it has not taken', () => {
    const { pair, qpA, qpB } = connectedPair(21);
    for (let i = 0; i < 10; i++) postReceive(pair.b, qpB, [{ offset: 64, length: 64 }], i);
    for (let i = 0; i < 10; i++) {
      pair.a.port.sendCredit = i % 3;
      postSend(pair.a, qpA, send);
      pair.a.driver.pump();
    }
    pair.a.port.sendCredit = Infinity;
    pair.a.driver.pump();
    pair.b.driver.pump();
    assert.deepEqual(
      drain(pair.b.receiveCq).map((c) => c.cookie),
      [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
    );
    assert.equal(pair.a.driver.device.counters.retries, 0);
  });

  it('waits as a NAK asks from when it came in, however long sending took', () => {
    const pair = new HcaPair(21);
    const [qpA, qpB] = [pair.a.createQp(), pair.b.createQp()];
    // Timer code 14: 1280 us.
    connect(pair, qpA, qpB, { minRnrTimer: 14 });
    postSend(pair.a, qpA, send);
    pair.a.driver.pump();
    pair.b.driver.pump();
    const { port } = pair.a;
    const original = port.send.bind(port);
    port.send = (from, to) => {
      pair.clock.timeUs += 5000;
      return original(from, to);
    };
    postSend(pair.a, qpA, send);
    pair.a.driver.pump();
    assert.equal(pair.a.driver.device.counters.rnrNaksReceived, 1);
    assert.ok(pair.a.driver.nextDeadlineUs() >= pair.clock.timeUs + 1280);
  });

  it('lets who polls post receives again before it takes in more', () => {
    const { pair, qpA, qpB } = connectedPair(21);
    const { port, driver } = pair.b;
    const [inFlight, receives] = [4, 8];
    for (let i = 0; i < receives; i++) postReceive(pair.b, qpB, [{ offset: 64, length: 64 }]);
    const takeIn = port.receive.bind(port);
    let waiting = 0;
    // The peer is at work whenever the port is looked at, and sends on as soon as it may.
    port.receive = () => {
      pair.a.driver.pump();
      for (waiting -= drain(pair.a.sendCq).length; waiting < inFlight; waiting++) {
        postSend(pair.a, qpA, send);
      }
      pair.a.driver.pump();
      return takeIn();
    };
    let arrived = 0;
    for (let turn = 0; turn < 100; turn++) {
      const hasMore = driver.pump();
      const came = drain(pair.b.receiveCq).length;
      for (let i = 0; i < came; i++) postReceive(pair.b, qpB, [{ offset: 64, length: 64 }]);
      arrived += came;
      assert.equal(hasMore, true);
    }
    assert.equal(driver.device.counters.rnrNaksSent, 0);
    assert.ok(arrived >= 100 * (inFlight / 2), `${arrived} arrived`);
  });

  describe('whose consumer polls', () => {
    const message = [{ offset: 64, length: 64 }];

    /** A completion is shown that nobody has fetched, and a second message has come. */
    function shown(): ReturnType<typeof connectedPair> {
      const world = connectedPair(21);
      const { pair, qpA, qpB } = world;
      for (let i = 0; i < 2; i++) {
        postReceive(pair.b, qpB, message);
        postSend(pair.a, qpA, send);
        pair.a.driver.pump();
        if (i === 0) pair.b.driver.pump();
      }
      assert.equal(pair.b.port.pending, 1);
      return world;
    }

    it('leaves him three pumps, and then goes on without him', () => {
      const { driver, port, receiveCq } = shown().pair.b;
      for (let i = 0; i < 3; i++) {
        assert.equal(driver.pump(), true);
        assert.equal(port.pending, 1);
      }
      driver.pump();
      assert.equal(port.pending, 0);
      assert.equal(drain(receiveCq).length, 2);
    });

    it('goes on as soon as he has been there', () => {
      const { driver, port, receiveCq } = shown().pair.b;
      drain(receiveCq);
      driver.pump();
      assert.equal(port.pending, 0);
    });

    it('goes on when he wants to be told', () => {
      const { driver, port, receiveCq } = shown().pair.b;
      receiveCq.arm(false);
      driver.pump();
      assert.equal(port.pending, 0);
    });

    it('does not wait for him when there is nothing new for him', () => {
      const { pair, qpA } = shown();
      const { driver, port } = pair.b;
      while (port.pending > 0) driver.pump();
      for (let i = 0; i < 3; i++) driver.pump();
      const { RDMA_WRITE } = WrOpcode;
      const { rkey } = pair.b.region;
      for (let i = 0; i < 5; i++) {
        postSend(pair.a, qpA, { ...send, opcode: RDMA_WRITE, remoteAddress: pair.b.base, rkey });
        pair.a.driver.pump();
        driver.pump();
        assert.equal(port.pending, 0);
      }
    });

    it('sends what he posts, and runs what others have deferred, meanwhile', () => {
      const { pair, qpB } = shown();
      let ran = false;
      pair.b.driver.defer(() => (ran = true));
      // The first leaves at its doorbell.
      for (let i = 0; i < 2; i++) postSend(pair.b, qpB, send);
      const before = pair.b.port.counters.sentPackets;
      pair.b.driver.pump();
      assert.ok(ran && pair.b.port.pending === 1);
      assert.ok(pair.b.port.counters.sentPackets > before);
    });
  });
});
