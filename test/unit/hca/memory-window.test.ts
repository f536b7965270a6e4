import assert from 'node:assert/strict';
import {
  Access,
  AsyncEventType,
  QpState,
  QpType,
  WcFlags,
  WcOpcode,
  WcStatus,
  WrFlags,
  WrOpcode,
  nextRkey,
} from '../../../core/spi/index.js';
import type { MemoryRegion, MemoryWindow, QueuePair } from '../../../core/spi/index.js';
import { HcaPair, connect, drain, postReceive, postSend } from '../../support/hca-pair.js';
import type { Bind, SendRequest } from '../../support/hca-pair.js';

const { SUCCESS, WR_FLUSH_ERR, REM_ACCESS_ERR, REM_INV_REQ_ERR, MW_BIND_ERR } = WcStatus;
const { REMOTE_READ, REMOTE_WRITE, REMOTE_ATOMIC, LOCAL_WRITE, MW_BIND, ZERO_BASED } = Access;
const REMOTE = REMOTE_READ | REMOTE_WRITE | REMOTE_ATOMIC;
/** Where windows lie in the region of b, unless a test says otherwise. */
const START = 0x2000;
const LENGTH = 0x1000;

class World {
  readonly pair: HcaPair;
  readonly qpA: QueuePair;
  readonly qpB: QueuePair;
  readonly region: MemoryRegion;

  constructor(seed = 1, access: number = LOCAL_WRITE | MW_BIND) {
    this.pair = new HcaPair(seed);
    const { a, b } = this.pair;
    this.qpA = a.createQp();
    this.qpB = b.createQp();
    connect(this.pair, this.qpA, this.qpB);
    a.bytes.fill(0xaa, 0, 0x4000);
    this.region = b.pd.registerMemory(b.bytes, access, b.base);
  }

  window(type: 1 | 2): MemoryWindow {
    return this.pair.b.driver.device.createMemoryWindow(this.pair.b.pd, type);
  }

  bindOf(window: MemoryWindow, change: Partial<Bind> = {}): Bind {
    return {
      window,
      rkey: nextRkey(window.rkey),
      region: this.region,
      address: this.pair.b.base + BigInt(START),
      length: LENGTH,
      access: REMOTE,
      ...change,
    };
  }

  postBind(window: MemoryWindow, change: Partial<Bind> = {}, flags?: number): void {
    const bind = this.bindOf(window, change);
    postSend(this.pair.b, this.qpB, {
      opcode: WrOpcode.BIND_MW,
      bind,
      ...(flags !== undefined && { flags }),
    });
  }

  /** A window, bound; its key. */
  bound(type: 1 | 2, change: Partial<Bind> = {}): MemoryWindow {
    const window = this.window(type);
    this.postBind(window, change);
    assert.deepEqual(this.statuses('b'), [SUCCESS]);
    return window;
  }

  statuses(side: 'a' | 'b', forUs = 1000): number[] {
    this.pair.run(forUs);
    return drain(this.pair[side].sendCq).map((c) => c.status);
  }

  request(opcode: number, rkey: number, offset = START, length = 8): SendRequest {
    const remoteAddress = this.pair.b.base + BigInt(offset);
    return { opcode, segments: [{ offset: 0, length }], remoteAddress, rkey };
  }

  /** What the peer's request through a key ends with. */
  access(opcode: number, rkey: number, offset = START, length = 8, qp = this.qpA): number {
    postSend(this.pair.a, qp, this.request(opcode, rkey, offset, length));
    const [status] = this.statuses('a', 20_000);
    return status!;
  }

  sendWithInvalidate(rkey: number): void {
    postReceive(this.pair.b, this.qpB, [{ offset: 0, length: 64 }]);
    const opcode = WrOpcode.SEND_WITH_INV;
    const segments = [{ offset: 0, length: 8 }];
    postSend(this.pair.a, this.qpA, { opcode, segments, immediate: rkey });
  }

  localInvalidate(rkey: number): void {
    postSend(this.pair.b, this.qpB, { opcode: WrOpcode.LOCAL_INV, immediate: rkey });
  }
}

const { RDMA_WRITE, RDMA_READ, ATOMIC_FETCH_AND_ADD, ATOMIC_CMP_AND_SWP } = WrOpcode;
const RIGHT_OF = [
  ['WRITE', RDMA_WRITE, REMOTE_WRITE],
  ['READ', RDMA_READ, REMOTE_READ],
  ['fetch-and-add', ATOMIC_FETCH_AND_ADD, REMOTE_ATOMIC],
  ['compare-and-swap', ATOMIC_CMP_AND_SWP, REMOTE_ATOMIC],
] as const;

/** WRITE, SEND with invalidate of three packets, bind again, WRITE: with one packet in trouble. */
function invalidateUnder(fault: 'lost' | 'repeated' | 'late', side: 'a' | 'b', nth: number): void {
  const world = new World();
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
  for (const type of [1, 2] as const) {
    describe(`of type ${type}`, () => {
      for (const [name, opcode, right] of RIGHT_OF) {
        it(`lets a ${name} pass if it grants that, and only that`, () => {
          const world = new World();
          const { rkey } = world.bound(type, { access: right });
          assert.equal(world.access(opcode, rkey), SUCCESS);
          assert.equal(world.access(opcode, rkey, START + LENGTH - 8), SUCCESS);
          const other = new World();
          const without = other.bound(type, { access: REMOTE & ~right });
          assert.equal(other.access(opcode, without.rkey), REM_ACCESS_ERR);
          assert.deepEqual(other.pair.b.events, [AsyncEventType.QP_ACCESS_ERR]);
        });

        it(`refuses a ${name} outside of it, though inside the region`, () => {
          for (const [offset, length] of [
            [START - 8, 8],
            [START + LENGTH, 8],
            [START + LENGTH - 4, 8],
          ] as const) {
            const world = new World();
            const { rkey } = world.bound(type);
            const before = world.pair.b.bytes.slice();
            const aligned = opcode === ATOMIC_FETCH_AND_ADD || opcode === ATOMIC_CMP_AND_SWP;
            if (aligned && offset % 8 !== 0) continue;
            assert.equal(world.access(opcode, rkey, offset, length), REM_ACCESS_ERR);
            assert.deepEqual(world.pair.b.bytes, before);
          }
        });
      }

      it('grants nothing before it is bound', () => {
        const world = new World();
        assert.equal(world.access(RDMA_WRITE, world.window(type).rkey), REM_ACCESS_ERR);
      });

      it('has its key while bound: the one that the bind named, the number stays', () => {
        const world = new World();
        const window = world.window(type);
        const before = window.rkey;
        world.postBind(window, { rkey: nextRkey(before) });
        world.statuses('b');
        assert.equal(window.rkey, nextRkey(before));
        assert.equal(window.rkey >>> 8, before >>> 8);
        assert.equal(world.access(RDMA_WRITE, before), REM_ACCESS_ERR);
      });

      it('is no key for local segments', () => {
        const world = new World();
        const { rkey } = world.bound(type);
        const segments = [{ offset: START, length: 8, lkey: rkey }];
        postSend(world.pair.b, world.qpB, { opcode: WrOpcode.SEND, segments });
        assert.deepEqual(world.statuses('b'), [WcStatus.LOC_PROT_ERR]);
      });

      it('keeps its region: EBUSY until it is unbound or gone', () => {
        const world = new World();
        const window = world.bound(type);
        assert.throws(() => world.region.destroy(), { code: 'EBUSY', message: /1 windows/ });
        window.destroy();
        window.destroy();
        world.region.destroy();
        assert.equal(world.access(RDMA_WRITE, window.rkey), REM_ACCESS_ERR);
      });

      it('destroyed under a WRITE refuses the rest of it, and nothing more is written', () => {
        const world = new World();
        const window = world.bound(type);
        const { pair } = world;
        pair.a.port.sendCredit = 2;
        postSend(pair.a, world.qpA, world.request(RDMA_WRITE, window.rkey, START, LENGTH));
        pair.settle();
        assert.equal(pair.b.bytes.subarray(START).indexOf(0), 2048);
        window.destroy();
        pair.a.port.sendCredit = Infinity;
        assert.deepEqual(world.statuses('a'), [REM_ACCESS_ERR]);
        assert.equal(pair.b.bytes.subarray(START).indexOf(0), 2048);
        assert.equal(world.qpB.state, QpState.ERR);
      });

      it('destroyed under a READ refuses the rest of it', () => {
        const world = new World();
        const window = world.bound(type);
        const { pair } = world;
        pair.b.bytes.fill(0x77, START, START + LENGTH);
        pair.b.port.sendCredit = 0;
        postSend(pair.a, world.qpA, world.request(RDMA_READ, window.rkey, START, LENGTH));
        pair.a.driver.progress();
        // The request is in; window and memory go before the first response is made.
        pair.b.port.sendCredit = Infinity;
        window.destroy();
        assert.deepEqual(world.statuses('a'), [REM_ACCESS_ERR]);
        assert.equal(pair.a.bytes.includes(0x77), false);
      });
    });
  }

  it('of type 1 is open to every queue pair of its domain, of type 2 to one', () => {
    for (const [type, status] of [
      [1, SUCCESS],
      [2, REM_ACCESS_ERR],
    ] as const) {
      const world = new World();
      const { rkey } = world.bound(type);
      const { pair } = world;
      const other = pair.a.createQp();
      connect(pair, other, pair.b.createQp());
      assert.equal(world.access(RDMA_WRITE, rkey, START, 8, other), status);
      assert.equal(world.access(RDMA_WRITE, rkey), SUCCESS);
    }
  });

  it('of either type is closed to queue pairs of another domain', () => {
    for (const type of [1, 2] as const) {
      const world = new World();
      const { rkey } = world.bound(type);
      const { pair } = world;
      const pd = pair.b.driver.device.createProtectionDomain();
      const other = pair.a.createQp();
      connect(pair, other, pair.b.createQp({ pd }));
      assert.equal(world.access(RDMA_WRITE, rkey, START, 8, other), REM_ACCESS_ERR);
    }
  });

  describe('binding', () => {
    it('type 1 anew moves it and kills the old key; length 0 unbinds', () => {
      const world = new World();
      const window = world.bound(1);
      const old = window.rkey;
      world.postBind(window, { address: world.pair.b.base, length: 64 });
      assert.deepEqual(world.statuses('b'), [SUCCESS]);
      assert.equal(world.access(RDMA_WRITE, window.rkey, 0), SUCCESS);
      world.postBind(window, { length: 0 });
      assert.deepEqual(world.statuses('b'), [SUCCESS]);
      world.region.destroy();
      const last = window.rkey;
      assert.notEqual(last, old);
      assert.equal(world.access(RDMA_WRITE, last, 0), REM_ACCESS_ERR);
    });

    it('type 2 again needs an invalidation between', () => {
      const world = new World();
      const window = world.bound(2);
      const old = window.rkey;
      world.localInvalidate(old);
      world.postBind(window);
      assert.deepEqual(world.statuses('b'), [SUCCESS, SUCCESS]);
      assert.equal(world.access(RDMA_WRITE, window.rkey), SUCCESS);
      assert.equal(world.access(RDMA_WRITE, old), REM_ACCESS_ERR);
    });

    it('ZERO_BASED counts remote addresses from 0', () => {
      const world = new World();
      const { rkey } = world.bound(2, { access: REMOTE | ZERO_BASED });
      const { pair, qpA } = world;
      const remoteAddress = 16n;
      postSend(pair.a, qpA, { ...world.request(RDMA_WRITE, rkey), remoteAddress });
      assert.deepEqual(world.statuses('a'), [SUCCESS]);
      assert.equal(pair.b.bytes.indexOf(0xaa), START + 16);
      assert.equal(world.access(RDMA_WRITE, rkey), REM_ACCESS_ERR);
    });

    it('may grant more to peers than the region does, but not to change what is read only', () => {
      const world = new World(1, MW_BIND);
      const { rkey } = world.bound(2, { access: REMOTE_READ });
      assert.equal(world.access(RDMA_READ, rkey), SUCCESS);
      world.postBind(world.window(2), { access: REMOTE_WRITE });
      assert.deepEqual(world.statuses('b'), [MW_BIND_ERR]);
    });

    const refused: [string, (world: World) => [MemoryWindow, Partial<Bind>]][] = [
      [
        'a region without MW_BIND',
        (w) => {
          const region = w.pair.b.pd.registerMemory(w.pair.b.bytes, LOCAL_WRITE, w.pair.b.base);
          return [w.window(2), { region }];
        },
      ],
      [
        'a region of another domain',
        (w) => {
          const pd = w.pair.b.driver.device.createProtectionDomain();
          const access = LOCAL_WRITE | MW_BIND;
          const region = pd.registerMemory(w.pair.b.bytes, access, w.pair.b.base);
          return [w.window(2), { region }];
        },
      ],
      [
        'a window of another domain',
        (w) => {
          const { device } = w.pair.b.driver;
          return [device.createMemoryWindow(device.createProtectionDomain(), 1), {}];
        },
      ],
      [
        'a region that is gone',
        (w) => {
          const { b } = w.pair;
          const region = b.pd.registerMemory(b.bytes, LOCAL_WRITE | MW_BIND, b.base);
          region.destroy();
          return [w.window(1), { region }];
        },
      ],
      ['a range past the end', (w) => [w.window(2), { length: (1 << 20) - START + 1 }]],
      ['a range before the start', (w) => [w.window(1), { address: w.pair.b.base - 1n }]],
      ['a length of 2^32 more', (w) => [w.window(1), { length: 2 ** 32 + 8 }]],
      ['no length, type 2', (w) => [w.window(2), { length: 0 }]],
      ['the right of a region', (w) => [w.window(2), { access: REMOTE_READ | LOCAL_WRITE }]],
      ['the right to bind', (w) => [w.window(1), { access: REMOTE_READ | MW_BIND }]],
      ['ZERO_BASED, type 1', (w) => [w.window(1), { access: REMOTE_READ | ZERO_BASED }]],
      [
        'the key of another window',
        (w) => {
          const window = w.window(2);
          return [window, { rkey: (window.rkey ^ 0x100) >>> 0 }];
        },
      ],
      [
        'the same key, type 1',
        (w) => {
          const window = w.bound(1);
          return [window, { rkey: window.rkey }];
        },
      ],
      ['a bound window, type 2', (w) => [w.bound(2), {}]],
    ];
    for (const [what, prepare] of refused) {
      it(`${what}: MW_BIND_ERR, signalled or not, and the queue pair goes to ERR`, () => {
        const world = new World();
        const [window, change] = prepare(world);
        const { rkey } = window;
        world.postBind(window, change, 0);
        world.postBind(world.window(2));
        world.pair.run(1000);
        assert.deepEqual(
          drain(world.pair.b.sendCq).map((c) => [c.status, c.opcode]),
          [
            [MW_BIND_ERR, WcOpcode.BIND_MW],
            [WR_FLUSH_ERR, WcOpcode.BIND_MW],
          ],
        );
        assert.equal(world.qpB.state, QpState.ERR);
        assert.equal(window.rkey, rkey, 'nothing has changed');
      });
    }

    it('a window that is gone is a malformed request: LOC_QP_OP_ERR', () => {
      const world = new World();
      const window = world.window(2);
      window.destroy();
      world.postBind(window);
      assert.deepEqual(world.statuses('b'), [WcStatus.LOC_QP_OP_ERR]);
    });

    it('a refused one behind requests under way fails when they have completed', () => {
      const world = new World();
      postReceive(world.pair.a, world.qpA, [{ offset: 0, length: 64 }]);
      postSend(world.pair.b, world.qpB, {
        opcode: WrOpcode.SEND,
        segments: [{ offset: 0, length: 8 }],
      });
      world.postBind(world.window(2), { length: 0 });
      assert.deepEqual(world.statuses('b'), [SUCCESS, MW_BIND_ERR]);
    });

    it('is a request of connected queue pairs: a datagram one refuses it', () => {
      const world = new World();
      const qp = world.pair.b.createQp({ type: QpType.UD });
      qp.modify({ state: QpState.INIT, pkeyIndex: 0, portNumber: 1, qkey: 1 });
      qp.modify({ state: QpState.RTR });
      qp.modify({ state: QpState.RTS, sendPsn: 1 });
      const bind = world.bindOf(world.window(1));
      postSend(world.pair.b, qp, { opcode: WrOpcode.BIND_MW, bind });
      assert.deepEqual(world.statuses('b'), [WcStatus.LOC_QP_OP_ERR]);
    });
  });

  describe('invalidation', () => {
    it('by the peer’s SEND: the receive says so and names the key, which is dead', () => {
      const world = new World();
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
      const world = new World();
      const { rkey } = world.bound(2);
      postSend(world.pair.a, world.qpA, world.request(RDMA_WRITE, rkey, START));
      world.sendWithInvalidate(rkey);
      postSend(world.pair.a, world.qpA, world.request(RDMA_WRITE, rkey, START + 64));
      assert.deepEqual(world.statuses('a'), [SUCCESS, SUCCESS, REM_ACCESS_ERR]);
      assert.equal(world.pair.b.bytes[START], 0xaa);
      assert.equal(world.pair.b.bytes[START + 64], 0);
    });

    const wrong: [string, (world: World) => number][] = [
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
        const world = new World();
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
        const world = new World();
        world.localInvalidate(keyOf(world));
        world.pair.run(100);
        assert.deepEqual(
          drain(world.pair.b.sendCq).map((c) => [c.status, c.opcode]),
          [[MW_BIND_ERR, WcOpcode.LOCAL_INV]],
        );
      });
    }

    it('twice: the second one fails', () => {
      const world = new World();
      const { rkey } = world.bound(2);
      world.localInvalidate(rkey);
      world.localInvalidate(rkey);
      assert.deepEqual(world.statuses('b'), [SUCCESS, MW_BIND_ERR]);
    });

    it('a duplicate of the SEND comes late, the window is bound again: it stays bound', () => {
      const world = new World();
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
        const world = new World();
        world.bound(2);
        end(world.qpB);
        world.region.destroy();
        const other = new World();
        other.bound(1);
        end(other.qpB);
        assert.throws(() => other.region.destroy(), { code: 'EBUSY' });
      });
    }
  });

  it('destroyed after an atomic: a late duplicate of it is answered, and not done again', () => {
    const world = new World();
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

  describe('in the order of requests', () => {
    it('a bind is done before a later SEND leaves, so its receiver may use the key', () => {
      const world = new World();
      const { pair, qpB } = world;
      const window = world.window(2);
      postReceive(pair.a, world.qpA, [{ offset: 0, length: 64 }]);
      world.postBind(window);
      const key = window.rkey;
      postSend(pair.b, qpB, { opcode: WrOpcode.SEND, segments: [{ offset: 0, length: 8 }] });
      assert.equal(window.rkey, key, 'nothing is done inside the doorbell');
      pair.b.driver.progress();
      assert.equal(pair.a.port.pending > 0, true);
      assert.equal(window.rkey, nextRkey(key));
      assert.deepEqual(world.statuses('b'), [SUCCESS, SUCCESS]);
    });

    it('completes when all before it have; lost packets do not repeat it', () => {
      for (let lost = 0; lost < 12; lost++) {
        const world = new World(3);
        const { pair, qpB } = world;
        const window = world.window(2);
        let count = 0;
        pair.b.port.filter = (packet) => (count++ === lost ? [] : [packet]);
        pair.a.port.filter = (packet) => (count++ === lost + 3 ? [] : [packet]);
        const segments = [{ offset: 0, length: 2500 }];
        const write = {
          segments,
          remoteAddress: pair.a.base + 0x8000n,
          rkey: pair.a.region.rkey,
        };
        const first = nextRkey(window.rkey);
        postSend(pair.b, qpB, { ...write, opcode: RDMA_WRITE, cookie: 1 });
        postSend(pair.b, qpB, { ...write, opcode: RDMA_READ, cookie: 2 });
        const bind = world.bindOf(window);
        postSend(pair.b, qpB, { opcode: WrOpcode.BIND_MW, bind, cookie: 3 });
        postSend(pair.b, qpB, { opcode: WrOpcode.LOCAL_INV, immediate: first, cookie: 4 });
        const again = world.bindOf(window, { rkey: nextRkey(first) });
        postSend(pair.b, qpB, { opcode: WrOpcode.BIND_MW, bind: again, cookie: 5 });
        postSend(pair.b, qpB, { ...write, opcode: RDMA_WRITE, cookie: 6 });
        const quiet = { opcode: WrOpcode.LOCAL_INV, immediate: nextRkey(first), flags: 0 };
        postSend(pair.b, qpB, { ...quiet, cookie: 7 });
        pair.run(100_000);
        assert.deepEqual(
          drain(pair.b.sendCq).map((c) => [c.cookie, c.status]),
          [1, 2, 3, 4, 5, 6].map((cookie) => [cookie, SUCCESS]),
          `lost ${lost}`,
        );
        world.region.destroy();
        assert.equal(qpB.state, QpState.RTS);
      }
    });

    it('with FENCE waits for earlier READs, without it does not', () => {
      for (const [flags, waits] of [
        [WrFlags.SIGNALED | WrFlags.FENCE, true],
        [WrFlags.SIGNALED, false],
      ] as const) {
        const world = new World();
        const { pair, qpB } = world;
        const window = world.window(2);
        const key = window.rkey;
        pair.a.port.sendCredit = 0;
        postSend(pair.b, qpB, {
          opcode: RDMA_READ,
          segments: [{ offset: 0, length: 8 }],
          remoteAddress: pair.a.base,
          rkey: pair.a.region.rkey,
        });
        world.postBind(window, {}, flags);
        pair.settle();
        assert.equal(window.rkey === key, waits);
        assert.deepEqual(drain(pair.b.sendCq), [], 'none has completed: the READ is first');
        pair.a.port.sendCredit = Infinity;
        assert.deepEqual(world.statuses('b', 20_000), [SUCCESS, SUCCESS]);
      }
    });

    it('unsignalled says nothing, and SQD drains it', () => {
      const world = new World();
      const window = world.window(2);
      const key = nextRkey(window.rkey);
      world.postBind(window, {}, 0);
      world.pair.settle();
      assert.equal(window.rkey, key);
      world.qpB.modify({ state: QpState.SQD, enableSqdAsyncNotify: true });
      world.localInvalidate(key);
      assert.deepEqual(world.statuses('b'), [], 'SQD begins nothing');
      assert.deepEqual(world.pair.b.events, [AsyncEventType.SQ_DRAINED]);
      world.qpB.modify({ state: QpState.RTS });
      assert.deepEqual(world.statuses('b'), [SUCCESS]);
    });

    it('posted in ERR is flushed and not done', () => {
      const world = new World();
      const window = world.window(2);
      const { rkey } = window;
      world.qpB.modify({ state: QpState.ERR });
      world.postBind(window);
      assert.deepEqual(world.statuses('b'), [WR_FLUSH_ERR]);
      assert.equal(window.rkey, rkey);
    });
  });

  describe('as an object', () => {
    it('belongs to its domain, which stays while it is there', () => {
      const { pair } = new World();
      const { device } = pair.b.driver;
      const pd = device.createProtectionDomain();
      const window = device.createMemoryWindow(pd, 1);
      assert.throws(() => pd.destroy(), { code: 'EBUSY' });
      window.destroy();
      pd.destroy();
      assert.throws(() => device.createMemoryWindow(pd, 1), { code: 'EINVAL' });
      assert.throws(() => device.createMemoryWindow(pair.a.pd, 1), { code: 'EINVAL' });
      assert.throws(() => device.createMemoryWindow(pair.b.pd, 3 as 1), { code: 'EINVAL' });
      assert.ok(device.attributes.maxMemoryWindows > 0);
      assert.ok(device.capabilities.has('memory-window'));
      assert.ok(device.capabilities.has('send-with-invalidate'));
    });

    it('has a key that no other window and no region has', () => {
      const { pair } = new World();
      const { device } = pair.b.driver;
      const prefixes = new Set<number>();
      for (let i = 0; i < 500; i++) {
        prefixes.add(device.createMemoryWindow(pair.b.pd, 2).rkey >>> 8);
        prefixes.add(pair.b.pd.registerMemory(new Uint8Array(8), 0).rkey >>> 8);
      }
      assert.ok(prefixes.size > 990, 'random, and never shared by a window');
    });

    it('goes with its device', async () => {
      const world = new World();
      world.bound(1);
      world.bound(2);
      await world.pair.b.driver.device.close();
    });
  });
});
