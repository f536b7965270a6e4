/**
 * What a peer of another make may count on: the ACK of its message leaves before what answers it,
 * however the consumer learns of the message and whenever it answers.
 */
import assert from 'node:assert/strict';
import { type PeerTerms, type QueuePair, WrOpcode } from '../../../core/spi/index.js';
import { RC } from '../../../core/spi/wire/opcode.js';
import {
  connect,
  drain,
  HcaPair,
  postReceive,
  postSend,
  type Side,
} from '../../support/hca-pair.js';

const BYTES = 8;
const segment = { offset: 0, length: BYTES };
const message = { opcode: WrOpcode.SEND, segments: [segment] };
const NAMES: Readonly<Record<number, string>> = {
  [RC.acknowledge]: 'ack',
  [RC.sendOnly]: 'send',
  [RC.writeOnly]: 'write',
};

/** Two sides; what the second one puts on the wire, and in how many calls of its port. */
class Scene {
  readonly pair = new HcaPair(5);
  readonly wire: string[] = [];
  calls = 0;
  private readonly qps: { a: QueuePair; b: QueuePair }[] = [];

  constructor(peer?: PeerTerms) {
    const { a, b } = this.pair;
    for (let i = 0; i < 2; i++) {
      const qps = { a: a.createQp(), b: b.createQp() };
      connect(this.pair, qps.a, qps.b, { ...(peer && { peer }) });
      for (let j = 0; j < 8; j++) {
        postReceive(a, qps.a, [segment]);
        postReceive(b, qps.b, [segment]);
      }
      this.qps.push(qps);
    }
    b.port.filter = (packet) => {
      this.wire.push(NAMES[packet[0]!] ?? `opcode ${packet[0]!}`);
      return [packet];
    };
    const send = b.port.send.bind(b.port);
    b.port.send = (from, to) => {
      this.calls += 1;
      return send(from, to);
    };
  }

  get b(): Side {
    return this.pair.b;
  }

  /** The peer's messages are on their way. */
  ask(count = 1, request: Parameters<typeof postSend>[2] = message): void {
    const { a } = this.pair;
    for (let i = 0; i < count; i++) postSend(a, this.qps[0]!.a, request, false);
    this.qps[0]!.a.ringSendDoorbell();
    a.driver.progress();
    this.wire.length = this.calls = 0;
  }

  answer(connection = 0): void {
    postSend(this.b, this.qps[connection]!.b, message);
  }

  /** A consumer that spins takes the message. */
  poll(): void {
    while (drain(this.b.receiveCq).length === 0) this.b.driver.progress();
  }

  /** What a handler does that runs when a message has come. */
  onMessage(handler: () => void): void {
    const { b } = this;
    b.receiveCq.arm(false);
    b.onNotified = () => {
      b.onNotified = () => undefined;
      drain(b.receiveCq);
      handler();
    };
  }
}

describe('an ACK before the answer', () => {
  const ways: Readonly<Record<string, (scene: Scene) => void>> = {
    'polled, answered at the doorbell': (scene) => {
      scene.ask();
      scene.poll();
      scene.answer();
      scene.b.driver.progress();
    },
    'answered inside the handler': (scene) => {
      scene.onMessage(() => scene.answer());
      scene.ask();
      scene.b.driver.pump();
    },
    'answered on another connection': (scene) => {
      scene.onMessage(() => scene.answer(1));
      scene.ask();
      scene.b.driver.pump();
    },
  };
  for (const [how, play] of Object.entries(ways)) {
    it(`${how}: first for any peer, in one call of the port`, () => {
      const scene = new Scene();
      play(scene);
      assert.deepEqual(scene.wire, ['ack', 'send']);
      assert.equal(scene.calls, 1);
    });

    it(`${how}: behind it between two of ours`, () => {
      const scene = new Scene({ lateAcks: true });
      play(scene);
      scene.pair.settle();
      assert.deepEqual(scene.wire, ['send', 'ack']);
    });
  }

  it('has left when the pump ends: what is awaited goes on in a microtask', () => {
    for (const [peer, wire] of [
      [undefined, ['ack']],
      [{ lateAcks: true }, []],
    ] as const) {
      const scene = new Scene(peer);
      scene.onMessage(() => undefined);
      scene.ask();
      scene.b.driver.pump(true);
      assert.deepEqual(scene.wire, wire);
    }
  });

  it('waits for no handler when several messages have come', () => {
    const scene = new Scene();
    let before: string[] | undefined;
    scene.onMessage(() => {
      before = [...scene.wire];
      scene.answer();
    });
    scene.ask(3);
    scene.b.driver.pump();
    assert.deepEqual(before, ['ack'], 'one for all three');
    scene.pair.settle();
    assert.deepEqual(scene.wire, ['ack', 'send']);
  });

  it('holds for a WRITE whose end the consumer sees in memory', () => {
    const scene = new Scene();
    const { b } = scene;
    scene.ask(1, {
      opcode: WrOpcode.RDMA_WRITE,
      segments: [segment],
      remoteAddress: b.base,
      rkey: b.region.rkey,
    });
    b.driver.progress();
    scene.answer();
    b.driver.progress();
    assert.deepEqual(scene.wire, ['ack', 'send']);
  });

  it('keeps no request waiting for the end of a long READ', () => {
    const scene = new Scene();
    const { b } = scene;
    const length = 1 << 19;
    scene.ask(1, {
      opcode: WrOpcode.RDMA_READ,
      segments: [{ offset: 0, length }],
      remoteAddress: b.base,
      rkey: b.region.rkey,
    });
    b.driver.progress();
    scene.answer();
    scene.pair.settle();
    const at = scene.wire.indexOf('send');
    assert.ok(at >= 0 && at < 128, `the request is packet ${at} of ${scene.wire.length}`);
  });
});
