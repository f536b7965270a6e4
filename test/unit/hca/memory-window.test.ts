/** Memory windows: who may do what through them, and the windows themselves. */
import assert from 'node:assert/strict';
import {
  Access,
  AsyncEventType,
  QpState,
  WcStatus,
  WrOpcode,
  nextRkey,
} from '../../../core/spi/index.js';
import { connect, postSend } from '../../support/hca-pair.js';
import { LENGTH, REMOTE, START, WindowWorld } from '../../support/window-world.js';

const { SUCCESS, REM_ACCESS_ERR } = WcStatus;
const { REMOTE_READ, REMOTE_WRITE, REMOTE_ATOMIC } = Access;
const { RDMA_WRITE, RDMA_READ, ATOMIC_FETCH_AND_ADD, ATOMIC_CMP_AND_SWP } = WrOpcode;

const RIGHT_OF = [
  ['WRITE', RDMA_WRITE, REMOTE_WRITE],
  ['READ', RDMA_READ, REMOTE_READ],
  ['fetch-and-add', ATOMIC_FETCH_AND_ADD, REMOTE_ATOMIC],
  ['compare-and-swap', ATOMIC_CMP_AND_SWP, REMOTE_ATOMIC],
] as const;

describe('Memory window', () => {
  for (const type of [1, 2] as const) {
    describe(`of type ${type}`, () => {
      for (const [name, opcode, right] of RIGHT_OF) {
        it(`lets a ${name} pass if it grants that, and only that`, () => {
          const world = new WindowWorld();
          const { rkey } = world.bound(type, { access: right });
          assert.equal(world.access(opcode, rkey), SUCCESS);
          assert.equal(world.access(opcode, rkey, START + LENGTH - 8), SUCCESS);
          const other = new WindowWorld();
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
            const world = new WindowWorld();
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
        const world = new WindowWorld();
        assert.equal(world.access(RDMA_WRITE, world.window(type).rkey), REM_ACCESS_ERR);
      });

      it('has its key while bound: the one that the bind named, the number stays', () => {
        const world = new WindowWorld();
        const window = world.window(type);
        const before = window.rkey;
        world.postBind(window, { rkey: nextRkey(before) });
        world.statuses('b');
        assert.equal(window.rkey, nextRkey(before));
        assert.equal(window.rkey >>> 8, before >>> 8);
        assert.equal(world.access(RDMA_WRITE, before), REM_ACCESS_ERR);
      });

      it('is no key for local segments', () => {
        const world = new WindowWorld();
        const { rkey } = world.bound(type);
        const segments = [{ offset: START, length: 8, lkey: rkey }];
        postSend(world.pair.b, world.qpB, { opcode: WrOpcode.SEND, segments });
        assert.deepEqual(world.statuses('b'), [WcStatus.LOC_PROT_ERR]);
      });

      it('keeps its region: EBUSY until it is unbound or gone', () => {
        const world = new WindowWorld();
        const window = world.bound(type);
        assert.throws(() => world.region.destroy(), { code: 'EBUSY', message: /1 windows/ });
        window.destroy();
        window.destroy();
        world.region.destroy();
        assert.equal(world.access(RDMA_WRITE, window.rkey), REM_ACCESS_ERR);
      });

      it('destroyed under a WRITE refuses the rest of it, and nothing more is written', () => {
        const world = new WindowWorld();
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
        const world = new WindowWorld();
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
      const world = new WindowWorld();
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
      const world = new WindowWorld();
      const { rkey } = world.bound(type);
      const { pair } = world;
      const pd = pair.b.driver.device.createProtectionDomain();
      const other = pair.a.createQp();
      connect(pair, other, pair.b.createQp({ pd }));
      assert.equal(world.access(RDMA_WRITE, rkey, START, 8, other), REM_ACCESS_ERR);
    }
  });

  describe('as an object', () => {
    it('belongs to its domain, which stays while it is there', () => {
      const { pair } = new WindowWorld();
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
      const { pair } = new WindowWorld();
      const { device } = pair.b.driver;
      const prefixes = new Set<number>();
      for (let i = 0; i < 500; i++) {
        prefixes.add(device.createMemoryWindow(pair.b.pd, 2).rkey >>> 8);
        prefixes.add(pair.b.pd.registerMemory(new Uint8Array(8), 0).rkey >>> 8);
      }
      assert.ok(prefixes.size > 990, 'random, and never shared by a window');
    });

    it('goes with its device', async () => {
      const world = new WindowWorld();
      const windows = [world.bound(1), world.bound(2)];
      const before = world.pair.b.bytes.slice();
      await world.pair.b.driver.device.close();
      for (const { rkey } of windows) {
        assert.notEqual(world.access(RDMA_WRITE, rkey), SUCCESS);
        assert.deepEqual(world.pair.b.bytes, before);
      }
    });
  });
});
