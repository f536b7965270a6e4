/** Binding memory windows: what is granted, and when. */
import assert from 'node:assert/strict';
import {
  Access,
  AsyncEventType,
  type MemoryWindow,
  nextRkey,
  QpState,
  QpType,
  WcOpcode,
  WcStatus,
  WrFlags,
  WrOpcode,
} from '../../../core/spi/index.js';
import { type Bind, drain, postReceive, postSend } from '../../support/hca-pair.js';
import { REMOTE, START, WindowWorld } from '../../support/window-world.js';

const { SUCCESS, WR_FLUSH_ERR, REM_ACCESS_ERR, MW_BIND_ERR } = WcStatus;
const { REMOTE_READ, REMOTE_WRITE, LOCAL_WRITE, MW_BIND, ZERO_BASED } = Access;
const { RDMA_WRITE, RDMA_READ } = WrOpcode;

describe('Memory window', () => {
  describe('binding', () => {
    it('type 1 anew moves it and kills the old key; length 0 unbinds', () => {
      const world = new WindowWorld();
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
      const world = new WindowWorld();
      const window = world.bound(2);
      const old = window.rkey;
      world.localInvalidate(old);
      world.postBind(window);
      assert.deepEqual(world.statuses('b'), [SUCCESS, SUCCESS]);
      assert.equal(world.access(RDMA_WRITE, window.rkey), SUCCESS);
      assert.equal(world.access(RDMA_WRITE, old), REM_ACCESS_ERR);
    });

    it('ZERO_BASED counts remote addresses from 0', () => {
      const world = new WindowWorld();
      const { rkey } = world.bound(2, { access: REMOTE | ZERO_BASED });
      const { pair, qpA } = world;
      const remoteAddress = 16n;
      postSend(pair.a, qpA, { ...world.request(RDMA_WRITE, rkey), remoteAddress });
      assert.deepEqual(world.statuses('a'), [SUCCESS]);
      assert.equal(pair.b.bytes.indexOf(0xaa), START + 16);
      assert.equal(world.access(RDMA_WRITE, rkey), REM_ACCESS_ERR);
    });

    it('may grant more to peers than the region does, but not to change what is read only', () => {
      const world = new WindowWorld(1, MW_BIND);
      const { rkey } = world.bound(2, { access: REMOTE_READ });
      assert.equal(world.access(RDMA_READ, rkey), SUCCESS);
      world.postBind(world.window(2), { access: REMOTE_WRITE });
      assert.deepEqual(world.statuses('b'), [MW_BIND_ERR]);
    });

    const refused: [string, (world: WindowWorld) => [MemoryWindow, Partial<Bind>]][] = [
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
        const world = new WindowWorld();
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
      const world = new WindowWorld();
      const window = world.window(2);
      window.destroy();
      world.postBind(window);
      assert.deepEqual(world.statuses('b'), [WcStatus.LOC_QP_OP_ERR]);
    });

    it('a refused one behind requests under way fails when they have completed', () => {
      const world = new WindowWorld();
      postReceive(world.pair.a, world.qpA, [{ offset: 0, length: 64 }]);
      postSend(world.pair.b, world.qpB, {
        opcode: WrOpcode.SEND,
        segments: [{ offset: 0, length: 8 }],
      });
      world.postBind(world.window(2), { length: 0 });
      assert.deepEqual(world.statuses('b'), [SUCCESS, MW_BIND_ERR]);
    });

    it('is a request of connected queue pairs: a datagram one refuses it', () => {
      const world = new WindowWorld();
      const qp = world.pair.b.createQp({ type: QpType.UD });
      qp.modify({ state: QpState.INIT, pkeyIndex: 0, portNumber: 1, qkey: 1 });
      qp.modify({ state: QpState.RTR });
      qp.modify({ state: QpState.RTS, sendPsn: 1 });
      const bind = world.bindOf(world.window(1));
      postSend(world.pair.b, qp, { opcode: WrOpcode.BIND_MW, bind });
      assert.deepEqual(world.statuses('b'), [WcStatus.LOC_QP_OP_ERR]);
    });
  });

  describe('in the order of requests', () => {
    it('a bind is done before a later SEND leaves, so its receiver may use the key', () => {
      const world = new WindowWorld();
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
        const world = new WindowWorld(3);
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
        const world = new WindowWorld();
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
      const world = new WindowWorld();
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
      const world = new WindowWorld();
      const window = world.window(2);
      const { rkey } = window;
      world.qpB.modify({ state: QpState.ERR });
      world.postBind(window);
      assert.deepEqual(world.statuses('b'), [WR_FLUSH_ERR]);
      assert.equal(window.rkey, rkey);
    });
  });
});
