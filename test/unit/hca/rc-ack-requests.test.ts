import assert from 'node:assert/strict';
import {
  Access,
  nextRkey,
  QpState,
  type QueuePair,
  type QueuePairAttributes,
  WcStatus,
  WrOpcode,
} from '../../../core/spi/index.js';
import { HcaPair, connect, drain, postReceive, postSend } from '../../support/hca-pair.js';

const MESSAGE = { opcode: WrOpcode.SEND, segments: [{ offset: 0, length: 8 }] };
const QUIET = { ...MESSAGE, flags: 0 };
const CLOSE_US = 10;

/** Two ends, and what has left the one: PSN, and whether it asks for an acknowledgement. */
class Scene {
  readonly pair = new HcaPair(9);
  readonly qp: QueuePair;
  readonly peer: QueuePair;
  readonly asked: boolean[] = [];
  readonly psns: number[] = [];
  /** Of the packets that leave, by their number; they are lost. */
  lost: readonly number[] = [];

  constructor(attributes: QueuePairAttributes = {}) {
    const { pair } = this;
    this.qp = pair.a.createQp();
    this.peer = pair.b.createQp();
    connect(pair, this.qp, this.peer, { timeout: 14, ...attributes });
    for (let i = 0; i < 100; i++) postReceive(pair.b, this.peer, MESSAGE.segments);
    pair.a.port.filter = (packet) => {
      this.asked.push((packet[8]! & 0x80) !== 0);
      this.psns.push((packet[9]! << 16) | (packet[10]! << 8) | packet[11]!);
      return this.lost.includes(this.psns.length - 1) ? [] : [packet];
    };
  }

  post(request: Parameters<typeof postSend>[2], count = 1): void {
    for (let i = 0; i < count; i++) {
      postSend(this.pair.a, this.qp, request);
      this.pair.run(CLOSE_US);
    }
  }

  get arrived(): number {
    return drain(this.pair.b.receiveCq).filter(({ status }) => status === WcStatus.SUCCESS).length;
  }

  /** What a move to ERR finds without an acknowledgement. */
  flush(): number {
    this.qp.modify({ state: QpState.ERR });
    this.pair.settle();
    return drain(this.pair.a.sendCq).length;
  }
}

describe('Acknowledgements that a requester asks for', () => {
  it('of messages that somebody awaits, all', () => {
    const scene = new Scene();
    scene.post(MESSAGE, 20);
    assert.deepEqual(scene.asked, new Array<boolean>(20).fill(true));
  });

  it('of those that nobody awaits, close to one another, each 16th', () => {
    const scene = new Scene();
    scene.post(QUIET, 50);
    const asking = scene.asked.flatMap((asks, i) => (asks ? [i] : []));
    assert.deepEqual(asking, [0, 16, 32, 48]);
    assert.equal(scene.arrived, 50);
    assert.equal(scene.pair.b.driver.device.hca.counters.acksSent, 4);
  });

  it('after a pause of 50 us the next: it may be the last for a while', () => {
    const scene = new Scene();
    scene.post(QUIET, 3);
    scene.pair.run(50);
    scene.post(QUIET, 2);
    assert.deepEqual(scene.asked, [true, false, false, true, false]);
  });

  it('of a message of several packets the last', () => {
    const scene = new Scene();
    scene.post(QUIET);
    const long = { ...QUIET, segments: [{ offset: 0, length: 3000 }] };
    postReceive(scene.pair.b, scene.peer, long.segments);
    const write = { ...long, opcode: WrOpcode.RDMA_WRITE, rkey: scene.pair.b.region.rkey };
    scene.post({ ...write, remoteAddress: scene.pair.b.base });
    assert.deepEqual(scene.asked, [true, false, false, true]);
  });

  it('all, where no ACK timer would come back to what has not been acknowledged', () => {
    const scene = new Scene({ timeout: 0 });
    scene.post(QUIET, 5);
    assert.ok(!scene.asked.includes(false));
  });
});

describe('A message that was not to be acknowledged, and none after it', () => {
  it('goes once more, and asks; that is no retry, and no silence', () => {
    const scene = new Scene();
    scene.post(QUIET, 4);
    scene.pair.run(1_000_000);
    const [first] = scene.psns;
    assert.deepEqual(scene.asked, [true, false, false, false, true]);
    assert.equal(scene.psns[4], (first! + 3) & 0xffffff);
    const { retries, timeouts, earlyRepeats } = scene.pair.a.driver.device.hca.counters;
    assert.deepEqual([retries, timeouts, earlyRepeats], [0, 0, 0]);
    assert.equal(scene.arrived, 4, 'each once');
    assert.equal(scene.flush(), 0);
  });

  it('arrives so when it was lost', () => {
    const scene = new Scene();
    scene.lost = [3];
    scene.post(QUIET, 4);
    scene.pair.run(10_000);
    assert.equal(scene.arrived, 4);
    assert.equal(scene.flush(), 0);
  });

  it('tells of the gap when one before it was lost', () => {
    const scene = new Scene();
    scene.lost = [2];
    scene.post(QUIET, 4);
    scene.pair.run(10_000);
    assert.equal(scene.arrived, 4);
    assert.equal(scene.flush(), 0);
  });

  it('and the repetition lost as well: asked for again', () => {
    const scene = new Scene();
    scene.lost = [3, 4, 5];
    scene.post(QUIET, 4);
    scene.pair.run(100_000);
    assert.equal(scene.arrived, 4);
    assert.equal(scene.flush(), 0);
  });

  it('costs no retry of a connection that has none, with a short ACK timer', () => {
    const scene = new Scene({ timeout: 4, retryCount: 0 });
    scene.post(QUIET, 4);
    scene.pair.run(100_000);
    assert.equal(scene.arrived, 4);
    assert.equal(scene.flush(), 0);
  });

  for (const [what, access, status] of [
    ['a bind', Access.MW_BIND, WcStatus.SUCCESS],
    ['a bind that is refused', 0, WcStatus.MW_BIND_ERR],
  ] as const) {
    it(`goes once more at once for ${what} behind it, which completes after it`, () => {
      const scene = new Scene();
      const { pair, qp } = scene;
      scene.post(QUIET, 3);
      const { device } = pair.a.driver;
      const window = device.createMemoryWindow(pair.a.pd, 1);
      const region = pair.a.pd.registerMemory(pair.a.bytes, access, pair.a.base);
      const bind = {
        window,
        rkey: nextRkey(window.rkey),
        region,
        address: pair.a.base,
        length: 64,
      };
      postSend(pair.a, qp, {
        opcode: WrOpcode.BIND_MW,
        bind: { ...bind, access: Access.REMOTE_READ },
      });
      pair.settle();
      const statuses = drain(pair.a.sendCq).map((completion) => completion.status);
      assert.deepEqual(statuses, [status]);
      assert.deepEqual(scene.asked, [true, false, false, true]);
    });
  }

  it('is answered by the response to a READ behind it', () => {
    const scene = new Scene();
    const { pair } = scene;
    scene.post(QUIET, 3);
    const remote = { rkey: pair.b.region.rkey, remoteAddress: pair.b.base };
    scene.post({ ...MESSAGE, ...remote, opcode: WrOpcode.RDMA_READ });
    assert.equal(drain(pair.a.sendCq).length, 1);
    pair.run(1_000_000);
    assert.equal(scene.psns.length, 4);
    assert.equal(scene.flush(), 0);
  });

  for (const end of ['moves to ERR', 'is destroyed'] as const) {
    it(`is acknowledged unasked when the peer ${end}`, () => {
      const scene = new Scene();
      scene.post(QUIET, 4);
      if (end === 'is destroyed') scene.peer.destroy();
      else scene.peer.modify({ state: QpState.ERR });
      scene.pair.settle();
      assert.equal(scene.flush(), 0);
      assert.equal(scene.psns.length, 4, 'without being asked');
    });

    it(`says nothing of a connection before it when a reset peer ${end}`, () => {
      const scene = new Scene();
      scene.post(QUIET, 4);
      scene.peer.modify({ state: QpState.RESET });
      const { counters } = scene.pair.b.driver.device.hca;
      const before = counters.acksSent;
      if (end === 'is destroyed') scene.peer.destroy();
      else {
        scene.peer.modify({ state: QpState.INIT, pkeyIndex: 0, portNumber: 1, accessFlags: 0 });
        scene.peer.modify({ state: QpState.ERR });
      }
      scene.pair.settle();
      assert.equal(counters.acksSent, before);
    });
  }
});
