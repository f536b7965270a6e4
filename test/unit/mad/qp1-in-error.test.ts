import assert from 'node:assert/strict';
import { AsyncEventType, QpState, WcStatus } from '../../../core/spi/index.js';
import { PortScene } from '../../support/port-scene.js';

const MADS_A_TURN = 16;
const MOST_RESTARTS = 8;

describe('MAD: QP1 in error', () => {
  it('is restarted with its receives, counted, and takes what had come before', () => {
    const scene = new PortScene();
    const { qp1, port } = scene;
    for (let id = 0; id < 20; id++) scene.arrive(id);
    qp1.modify({ state: QpState.ERR });
    scene.settle();
    assert.equal(scene.received.length, 20);
    assert.equal(qp1.state, QpState.RTS);
    assert.equal(qp1.receiveRing.length, 64);
    const { restarts, receiveErrors } = port.counters;
    assert.deepEqual({ restarts, receiveErrors }, { restarts: 1, receiveErrors: 44 });
    assert.ok(port.hasRoom);
    scene.arrive(20);
    scene.settle();
    assert.equal(scene.received.length, 21);
  });

  it('sends what is posted while it is restarted behind that, in order', () => {
    const scene = new PortScene({ sendDepth: 2 });
    const { qp1, port } = scene;
    const room: boolean[] = [];
    scene.onMad = () => {
      room.push(port.hasRoom);
      scene.post(100 + scene.received.length);
    };
    for (let id = 0; id < MADS_A_TURN + 3; id++) scene.arrive(id);
    qp1.modify({ state: QpState.ERR });
    scene.settle();
    assert.deepEqual(room.slice(0, 3), [true, true, false]);
    assert.deepEqual(room.slice(-3), [false, false, false]);
    const ids = Array.from({ length: MADS_A_TURN + 3 }, (_, at) => 101 + at);
    assert.deepEqual(scene.log, [
      ...ids.slice(0, 2).map((id) => `WR_FLUSH_ERR ${id}`),
      ...ids.slice(2).map((id) => `SUCCESS ${id}`),
    ]);
    assert.deepEqual(scene.carried, ids.slice(2));
  });

  it('rings for the receives that it posts anew, and has no room until they are there', () => {
    const scene = new PortScene();
    let rings = 0;
    scene.qp1.ringReceiveDoorbell = () => void rings++;
    scene.qp1.modify({ state: QpState.ERR });
    scene.settle();
    assert.equal(rings, 1);
    const room: boolean[] = [];
    scene.onMad = () => room.push(scene.port.hasRoom);
    for (let id = 0; id < MADS_A_TURN + 2; id++) scene.arrive(id);
    scene.qp1.modify({ state: QpState.ERR });
    scene.settle();
    assert.deepEqual(room, [...new Array<boolean>(MADS_A_TURN).fill(true), false, false]);
  });

  it('has what it has completed counted, though that is found as it is restarted', () => {
    const scene = new PortScene();
    scene.qp1.holdCompletions = true;
    scene.post(1);
    scene.onMad = () => {
      scene.qp1.releaseCompletions();
      scene.qp1.modify({ state: QpState.ERR });
    };
    scene.arrive(1);
    scene.settle();
    assert.deepEqual(scene.log, ['SUCCESS 1']);
    assert.equal(scene.port.counters.restarts, 1);
  });

  it('has those behind a failed send go again, flushed or forgotten, and what waits', () => {
    for (const flushed of [false, true]) {
      const scene = new PortScene({ sendDepth: 3 });
      const { qp1, port } = scene;
      qp1.sendStatuses.push(WcStatus.LOC_PROT_ERR);
      scene.post(1);
      qp1.holdCompletions = true;
      scene.post(2);
      port.post(scene.request(3, false));
      scene.post(4);
      while (scene.world.hasTasks) scene.world.runTask();
      assert.deepEqual(scene.log, ['LOC_PROT_ERR 1']);
      // QP1 goes to ERR while 2 and 3 are on it, and 4 has taken the place of 1.
      scene.post(5);
      scene.onMad = () => {
        if (flushed) qp1.releaseCompletions();
        qp1.modify({ state: QpState.ERR });
        qp1.holdCompletions = false;
      };
      scene.arrive(1);
      scene.settle();
      const lost = flushed ? ['WR_FLUSH_ERR 3', 'SUCCESS 4'] : ['WR_FLUSH_ERR 3', 'WR_FLUSH_ERR 4'];
      assert.deepEqual(scene.log.slice(1), [...lost, 'SUCCESS 2', 'SUCCESS 5'], `${flushed}`);
      assert.deepEqual(scene.carried, [4, 2, 5], `${flushed}`);
      assert.equal(port.counters.reposted, 1, `${flushed}`);
      const ends = scene.log.length;
      port.tear('the test');
      scene.settle();
      assert.equal(scene.log.length, ends + 1, 'each has come back once');
    }
  });

  it('has them go again in the order in which they were posted, wherever in the ring', () => {
    for (const flushed of [false, true]) {
      const scene = new PortScene({ sendDepth: 4 });
      const { qp1 } = scene;
      scene.post(1, 2);
      scene.settle();
      assert.equal(qp1.sendRing.entries, 4);
      qp1.sendStatuses.push(WcStatus.LOC_PROT_ERR);
      scene.post(3);
      qp1.holdCompletions = true;
      // 4 has the last entry of the ring, 5 and 6 the first two.
      scene.post(4, 5, 6);
      while (scene.world.hasTasks) scene.world.runTask();
      scene.onMad = () => {
        if (flushed) qp1.releaseCompletions();
        qp1.modify({ state: QpState.ERR });
        qp1.holdCompletions = false;
      };
      scene.arrive(1);
      scene.settle();
      assert.deepEqual(scene.carried, [1, 2, 4, 5, 6], `${flushed}`);
      assert.equal(scene.port.counters.reposted, 3, `${flushed}`);
    }
  });

  it('has one of them taken back while it waits for the restart', () => {
    const scene = new PortScene({ sendDepth: 3 });
    const { qp1, port } = scene;
    qp1.sendStatuses.push(WcStatus.LOC_PROT_ERR);
    scene.post(1);
    qp1.holdCompletions = true;
    const follower = scene.request(2);
    port.post(follower);
    scene.post(3);
    while (scene.world.hasTasks) scene.world.runTask();
    const taken: boolean[] = [];
    scene.onMad = () => {
      if (scene.received.length === 1) {
        qp1.releaseCompletions();
        qp1.modify({ state: QpState.ERR });
        qp1.holdCompletions = false;
      }
      // QP1 has been reset, and what it had completed been seen.
      if (scene.received.length > MADS_A_TURN) taken.push(port.withdraw(follower));
    };
    for (let id = 0; id < MADS_A_TURN + 2; id++) scene.arrive(id);
    scene.settle();
    assert.deepEqual(taken, [true, false]);
    assert.deepEqual(scene.carried, [3]);
    assert.deepEqual(scene.log, ['LOC_PROT_ERR 1', 'SUCCESS 3']);
  });

  it('stays in RESET where the port is lost as it is restarted', () => {
    const scene = new PortScene();
    for (let id = 0; id < MADS_A_TURN + 4; id++) scene.arrive(id);
    scene.onMad = () => {
      if (scene.received.length === MADS_A_TURN + 2) scene.port.tear('the test');
    };
    scene.qp1.modify({ state: QpState.ERR });
    scene.settle();
    assert.equal(scene.port.isOpen, false);
    assert.equal(scene.qp1.state, QpState.RESET);
  });

  it('is restarted as often as it must be while something gets through, either way', () => {
    for (const progress of ['sent', 'received'] as const) {
      const scene = new PortScene();
      for (let round = 0; round < 3 * MOST_RESTARTS; round++) {
        scene.qp1.modify({ state: QpState.ERR });
        scene.settle();
        if (round % MOST_RESTARTS !== MOST_RESTARTS - 1) continue;
        if (progress === 'sent') scene.post(round);
        else scene.arrive(round);
        scene.settle();
      }
      assert.equal(scene.port.counters.restarts, 3 * MOST_RESTARTS, progress);
      assert.ok(scene.port.isOpen);
    }
  });

  it('is given up where it is in error for the ninth time and nothing got through', () => {
    const scene = new PortScene();
    for (let round = 0; round < MOST_RESTARTS; round++) {
      scene.qp1.modify({ state: QpState.ERR });
      scene.settle();
      assert.ok(scene.port.isOpen);
    }
    scene.qp1.modify({ state: QpState.ERR });
    scene.settle();
    assert.equal(scene.port.isOpen, false);
    assert.deepEqual(scene.log, ['torn']);
  });

  it('stays so where that ends it: what was on it comes back, and it is not restarted', () => {
    const scene = new PortScene({ sendDepth: 1 });
    scene.qp1.holdCompletions = true;
    scene.post(1, 2);
    for (let id = 0; id < 40; id++) scene.arrive(id);
    scene.port.flush();
    scene.qp1.releaseCompletions();
    while (scene.world.hasTasks) scene.world.runTask();
    assert.equal(scene.world.activeTimers, 0);
    assert.equal(scene.port.counters.restarts, 0);
    assert.equal(scene.qp1.state, QpState.ERR);
    assert.deepEqual(scene.log, ['SUCCESS 1', 'torn', 'WR_FLUSH_ERR 2']);
  });

  it('is looked at when the device tells of it, and lost when the device is', () => {
    const told = new PortScene();
    told.qp1.state = QpState.ERR;
    told.qp1.raise(AsyncEventType.QP_FATAL);
    told.settle();
    assert.equal(told.port.counters.restarts, 1);
    for (const event of [AsyncEventType.CQ_ERR, AsyncEventType.DEVICE_FATAL]) {
      const lost = new PortScene();
      lost.qp1.raise(event);
      lost.settle();
      assert.deepEqual(lost.log, ['torn']);
    }
    const other = new PortScene();
    other.qp1.raise(AsyncEventType.COMM_EST);
    other.settle();
    assert.deepEqual([other.log, other.port.counters.restarts], [[], 0]);
  });

  it('is lost with a device that is gone as it is polled, or armed', () => {
    const polled = new PortScene();
    polled.arrive(1);
    polled.device.dead = true;
    polled.settle();
    assert.deepEqual([polled.log, polled.received.length], [['torn'], 0]);
    const armed = new PortScene();
    armed.onMad = () => void (armed.device.dead = true);
    armed.arrive(1);
    armed.settle();
    assert.deepEqual([armed.log, armed.received.length], [['torn'], 1]);
  });
});
