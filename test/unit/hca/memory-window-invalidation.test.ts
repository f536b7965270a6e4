/** Taking a window’s key back: here and by the peer’s SEND. */
import assert from 'node:assert/strict';
import {
  QpState,
  type QueuePair,
  WcFlags,
  WcOpcode,
  WcStatus,
  WrOpcode,
} from '../../../core/spi/index.js';
import { connect, drain, postReceive, postSend } from '../../support/hca-pair.js';
import { START, WindowWorld } from '../../support/window-world.js';

const { SUCCESS, REM_ACCESS_ERR, REM_INV_REQ_ERR, MW_BIND_ERR } = WcStatus;
const { RDMA_WRITE, RDMA_READ, ATOMIC_FETCH_AND_ADD } = WrOpcode;

/** WRITE, SEND with invalidate of three packets, bind again, WRITE: with one packet in trouble. */
function invalidateUnder(fault: 'lost' | 'repeated' | 'late', side: 'a' | 'b', nth: number): void {
  const world = new WindowWorld();
  const { pair, qpA, qpB } = world;
  const window = world.bound(2);
  const { rkey } = window;
  let count = 0;
  let held: Uint8Array | undefined;
  pair[side].port.filter = (packet) => {
    const late = held ? [held] : [];
    held = undefined;
    if (count++ !== nth) return [packet, ...late];
    if (fault === 'repeated') return [packet.slice(), packet];
    if (fault === 'late') held = packet.slice();
    return [];
  };
  const segments = [{ offset: 0, length: 3000 }];
  postReceive(pair.b, qpB, [{ offset: 0x8000, length: 4096 }]);
  postSend(pair.a, qpA, world.request(RDMA_WRITE, rkey, START, 2000));
  postSend(pair.a, qpA, { opcode: WrOpcode.SEND_WITH_INV, segments, immediate: rkey });
  const what = `${fault} ${side} ${nth}`;
  assert.deepEqual(world.statuses('a', 50_000), [SUCCESS, SUCCESS], what);
  assert.deepEqual(
    drain(pair.b.receiveCq).map((c) => [c.status, c.flags, c.immediate, c.byteLength]),
    [[SUCCESS, WcFlags.WITH_INV, rkey, 3000]],
    what,
  );
  world.postBind(window);
  assert.deepEqual(world.statuses('b'), [SUCCESS], what);
  assert.equal(world.access(RDMA_WRITE, window.rkey), SUCCESS, what);
  // The NAK of a refusal is said once: it must get through.
  pair[side].port.filter = undefined;
  assert.equal(world.access(RDMA_WRITE, rkey), REM_ACCESS_ERR, what);
}

describe('Memory window', () => {
  describe('invalidation', () => {
    it('by the peer’s SEND: the receive says so and names the key, which is dead', () => {
      const world = new WindowWorld();
      const { rkey } = world.bound(2);
      world.sendWithInvalidate(rkey);
      assert.deepEqual(world.statuses('a'), [SUCCESS]);
      const [received] = drain(world.pair.b.receiveCq);
      assert.equal(received?.status, SUCCESS);
      assert.equal(received?.flags, WcFlags.WITH_INV);
      assert.equal(received?.immediate, rkey);
      assert.equal(received?.byteLength, 8);
      world.region.destroy();
      assert.equal(world.access(RDMA_READ, rkey), REM_ACCESS_ERR);
    });

    it('by SEND comes before whatever the peer sent behind it', () => {
      const world = new WindowWorld();
      const { rkey } = world.bound(2);
      postSend(world.pair.a, world.qpA, world.request(RDMA_WRITE, rkey, START));
      world.sendWithInvalidate(rkey);
      postSend(world.pair.a, world.qpA, world.request(RDMA_WRITE, rkey, START + 64));
      assert.deepEqual(world.statuses('a'), [SUCCESS, SUCCESS, REM_ACCESS_ERR]);
      assert.equal(world.pair.b.bytes[START], 0xaa);
      assert.equal(world.pair.b.bytes[START + 64], 0);
    });

    const wrong: [string, (world: WindowWorld) => number][] = [
      ['a region', (w) => w.region.rkey],
      ['a type 1 window', (w) => w.bound(1).rkey],
      ['a window that is not bound', (w) => w.window(2).rkey],
      ['nobody', () => 0x12345678],
      ['an older bind', (w) => (w.bound(2).rkey ^ 1) >>> 0],
      [
        'another queue pair',
        (w) => {
          const other = w.pair.b.createQp();
          connect(w.pair, w.pair.a.createQp(), other);
          const window = w.window(2);
          const bind = w.bindOf(window);
          postSend(w.pair.b, other, { opcode: WrOpcode.BIND_MW, bind });
          assert.deepEqual(w.statuses('b'), [SUCCESS]);
          return window.rkey;
        },
      ],
    ];
    for (const [whose, keyOf] of wrong) {
      it(`by SEND of a key of ${whose}: the sender succeeds, the receiver fails and breaks`, () => {
        const world = new WindowWorld();
        const key = keyOf(world);
        world.sendWithInvalidate(key);
        assert.deepEqual(world.statuses('a'), [SUCCESS]);
        assert.deepEqual(
          drain(world.pair.b.receiveCq).map((c) => c.status),
          [REM_INV_REQ_ERR],
        );
        assert.equal(world.qpB.state, QpState.ERR);
      });

      it(`by LOCAL_INV of a key of ${whose} fails`, () => {
        const world = new WindowWorld();
        world.localInvalidate(keyOf(world));
        world.pair.run(100);
        assert.deepEqual(
          drain(world.pair.b.sendCq).map((c) => [c.status, c.opcode]),
          [[MW_BIND_ERR, WcOpcode.LOCAL_INV]],
        );
      });
    }

    it('twice: the second one fails', () => {
      const world = new WindowWorld();
      const { rkey } = world.bound(2);
      world.localInvalidate(rkey);
      world.localInvalidate(rkey);
      assert.deepEqual(world.statuses('b'), [SUCCESS, MW_BIND_ERR]);
    });

    it('a duplicate of the SEND comes late, the window is bound again: it stays bound', () => {
      const world = new WindowWorld();
      const window = world.bound(2);
      const { pair } = world;
      const { rkey } = window;
      const sent: Uint8Array[] = [];
      pair.a.port.filter = (packet) => {
        sent.push(packet.slice());
        return [packet];
      };
      world.sendWithInvalidate(rkey);
      pair.run(100);
      const duplicate = sent[0]!;
      // The same key again, which IBTA leaves to the consumer.
      world.postBind(window, { rkey });
      pair.run(100);
      pair.b.port.inject(duplicate);
      pair.run(100);
      assert.equal(world.access(RDMA_WRITE, rkey), SUCCESS);
      assert.equal(drain(pair.b.receiveCq).length, 1);
      assert.ok(pair.b.driver.device.counters.duplicateRequests > 0);
    });

    for (const fault of ['lost', 'repeated', 'late'] as const) {
      it(`by SEND takes the key back once, whichever packet is ${fault}`, () => {
        for (let nth = 0; nth < 10; nth++) {
          for (const side of ['a', 'b'] as const) invalidateUnder(fault, side, nth);
        }
      });
    }

    for (const [how, end] of [
      ['RESET', (qp: QueuePair) => qp.modify({ state: QpState.RESET })],
      ['destroy', (qp: QueuePair) => qp.destroy()],
    ] as const) {
      it(`${how} of its queue pair ends a type 2 window, and leaves one of type 1`, () => {
        const world = new WindowWorld();
        world.bound(2);
        end(world.qpB);
        world.region.destroy();
        const other = new WindowWorld();
        other.bound(1);
        end(other.qpB);
        assert.throws(() => other.region.destroy(), { code: 'EBUSY' });
      });
    }
  });

  it('destroyed after an atomic: a late duplicate of it is answered, and not done again', () => {
    const world = new WindowWorld();
    const window = world.bound(2);
    const { pair, qpA } = world;
    const sent: Uint8Array[] = [];
    pair.a.port.filter = (packet) => {
      sent.push(packet.slice());
      return [packet];
    };
    const add = { ...world.request(ATOMIC_FETCH_AND_ADD, window.rkey), compareAdd: 5n };
    postSend(pair.a, qpA, add);
    assert.deepEqual(world.statuses('a'), [SUCCESS]);
    window.destroy();
    const answers = pair.b.port.counters.sentPackets;
    pair.b.port.inject(sent[0]!);
    pair.run(100);
    assert.equal(pair.b.port.counters.sentPackets, answers + 1);
    assert.equal(pair.b.bytes[START], 5);
    assert.equal(world.qpB.state, QpState.RTS);
  });
});
