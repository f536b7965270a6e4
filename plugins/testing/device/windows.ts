/** Memory windows: keys that requests grant and revoke. */
import assert from 'node:assert/strict';
import {
  Access,
  type MemoryWindow,
  nextRkey,
  QpState,
  WcFlags,
  WcOpcode,
  WrOpcode,
} from 'dapl/spi';
import { type End, MEMORY_BYTES, type Send } from './end.js';
import { deviceGroup, type World } from './world.js';

const ACCESS = Access.LOCAL_WRITE | Access.MW_BIND;
const piece = { offset: 0, length: 64 };
const windowAt = { offset: 4096, length: 64 };

/** Two ends; b has a window of type 2, not yet bound. */
function windowed(world: World): { a: End; b: End; window: MemoryWindow } {
  const { a, b } = world.connected({ access: ACCESS });
  const window = b.device.createMemoryWindow!(b.pd, 2);
  a.fill(0, 64, 3);
  return { a, b, window };
}

function bindOf(window: MemoryWindow, more: Partial<NonNullable<Send['bind']>> = {}): Send {
  const { handle, rkey } = window;
  const bind = { window: handle, rkey: nextRkey(rkey), access: Access.REMOTE_WRITE, ...windowAt };
  return { opcode: WrOpcode.BIND_MW, bind: { ...bind, ...more } };
}

/** Lets a write into the window of b. */
function write(a: End, b: End, rkey: number): void {
  const remote = { address: b.address(windowAt.offset), rkey };
  a.send({ opcode: WrOpcode.RDMA_WRITE, pieces: [piece], remote });
}

export const windows = deviceGroup('Windows', (claim) => {
  const needs = ['memory-window'] as const;

  claim(
    'a bind gives the key that was computed, and LOCAL_INV takes it back',
    async (world) => {
      const { a, b, window } = windowed(world);
      const rkey = nextRkey(window.rkey);
      b.send(bindOf(window));
      const [bound] = await world.completions(b, 1);
      assert.deepEqual([bound?.status, bound?.opcode], [0, WcOpcode.BIND_MW]);
      assert.equal(window.rkey, rkey);
      write(a, b, rkey);
      assert.deepEqual(await world.statuses(a, 1), ['SUCCESS']);
      assert.deepEqual(b.memory.slice(4096, 4160), a.memory.slice(0, 64));
      b.memory.fill(0);
      b.send({ opcode: WrOpcode.LOCAL_INV, immediate: rkey });
      const [invalidated] = await world.completions(b, 1);
      assert.deepEqual([invalidated?.status, invalidated?.opcode], [0, WcOpcode.LOCAL_INV]);
      write(a, b, rkey);
      assert.deepEqual(await world.statuses(a, 1), ['REM_ACCESS_ERR']);
      assert.ok(b.memory.every((byte) => byte === 0));
    },
    needs,
  );

  claim(
    'a key that is sent behind its bind is good when it arrives',
    async (world) => {
      const { a, b, window } = windowed(world);
      const rkey = nextRkey(window.rkey);
      a.receive({ offset: 1024, length: 64 });
      b.send(bindOf(window), { pieces: [{ offset: 0, length: 8 }] });
      await world.completions(a, 1);
      write(a, b, rkey);
      assert.deepEqual(await world.statuses(a, 1), ['SUCCESS']);
      assert.deepEqual(await world.statuses(b, 2), ['SUCCESS', 'SUCCESS']);
    },
    needs,
  );

  claim(
    'a region is not destroyed while a window is bound to it',
    async (world) => {
      const { b, window } = windowed(world);
      b.send(bindOf(window));
      await world.completions(b, 1);
      assert.throws(() => b.region.destroy(), { code: 'EBUSY' });
      assert.throws(() => b.pd.destroy(), { code: 'EBUSY' });
      window.destroy();
      b.region.destroy();
    },
    needs,
  );

  claim(
    'a bind beyond the region is refused in its turn, and changes nothing',
    async (world) => {
      const { b, window } = windowed(world);
      const { rkey } = window;
      b.send({ opcode: WrOpcode.RDMA_WRITE }, bindOf(window, { offset: MEMORY_BYTES - 32 }), {
        opcode: WrOpcode.RDMA_WRITE,
      });
      const statuses = await world.statuses(b, 3);
      assert.ok(['MW_BIND_ERR', 'LOC_QP_OP_ERR'].includes(statuses[1] ?? ''), statuses[1]);
      assert.equal(statuses[2], 'WR_FLUSH_ERR');
      assert.equal(b.qp.state, QpState.ERR);
      assert.equal(window.rkey, rkey);
    },
    needs,
  );

  const invalidating = [...needs, 'send-with-invalidate'] as const;

  claim(
    'SEND_WITH_INV takes a window back, and its receive says which',
    async (world) => {
      const { a, b, window } = windowed(world);
      const rkey = nextRkey(window.rkey);
      b.send(bindOf(window));
      await world.completions(b, 1);
      b.receive({ offset: 0, length: 64 });
      a.send({ opcode: WrOpcode.SEND_WITH_INV, pieces: [piece], immediate: rkey });
      const [received] = await world.completions(b, 1);
      assert.deepEqual(
        [received?.status, (received?.flags ?? 0) & WcFlags.WITH_INV, received?.immediate],
        [0, WcFlags.WITH_INV, rkey],
      );
      assert.deepEqual(await world.statuses(a, 1), ['SUCCESS']);
      write(a, b, rkey);
      assert.deepEqual(await world.statuses(a, 1), ['REM_ACCESS_ERR']);
    },
    invalidating,
  );

  claim(
    'SEND_WITH_INV of what is no window here succeeds, and fails its receive',
    async (world) => {
      const { a, b, window } = windowed(world);
      b.receive({ offset: 0, length: 64 });
      a.send({ opcode: WrOpcode.SEND_WITH_INV, pieces: [piece], immediate: window.rkey });
      assert.deepEqual(await world.statuses(b, 1), ['REM_INV_REQ_ERR']);
      assert.deepEqual(await world.statuses(a, 1), ['SUCCESS']);
      assert.equal(b.qp.state, QpState.ERR);
    },
    invalidating,
  );
});
