/** Access to memory is limited to what its keys allow. */
import assert from 'node:assert/strict';
import { Access, WrOpcode } from 'dapl/spi';
import { type End, MEMORY_BYTES, type Send } from './end.js';
import { deviceGroup, type World } from './world.js';

/** Asserts that a request fails with its queue pair, and leaves the peer's memory unchanged. */
async function refused(world: World, a: End, b: End, request: Send): Promise<void> {
  const before = b.memory.slice();
  a.fill(0, 64, 1);
  a.send({ pieces: [{ offset: 0, length: 64 }], ...request });
  assert.deepEqual(await world.statuses(a, 1), ['REM_ACCESS_ERR']);
  await world.quiet();
  assert.deepEqual(b.memory, before);
}

export const protecting = deviceGroup('Protecting memory', (claim) => {
  const opcode = WrOpcode.RDMA_WRITE;

  claim('a write beyond the end of a region is refused, all of it', async (world) => {
    const { a, b } = world.connected();
    const remote = { address: b.address(MEMORY_BYTES - 32), rkey: b.region.rkey };
    await refused(world, a, b, { opcode, remote });
  });

  claim('a write in front of a region is refused', async (world) => {
    const { a, b } = world.connected();
    await refused(world, a, b, {
      opcode,
      remote: { address: b.address() - 32n, rkey: b.region.rkey },
    });
  });

  claim('a write with a wrong key is refused', async (world) => {
    const { a, b } = world.connected();
    const remote = { address: b.address(), rkey: b.region.rkey ^ 0x5a5a };
    await refused(world, a, b, { opcode, remote });
  });

  claim('a write to a region that is not open to writes is refused', async (world) => {
    const { a, b } = world.connected({ access: Access.LOCAL_WRITE | Access.REMOTE_READ });
    await refused(world, a, b, { opcode, remote: { address: b.address(), rkey: b.region.rkey } });
  });

  claim('a write with the key of a region that is gone is refused', async (world) => {
    const { a, b } = world.connected();
    const { rkey } = b.region;
    const address = b.address();
    b.region.destroy();
    await refused(world, a, b, { opcode, remote: { address, rkey } });
  });

  claim(
    'a read of a region that is not open to reads brings nothing',
    async (world) => {
      const { a, b } = world.connected({ access: Access.LOCAL_WRITE | Access.REMOTE_WRITE });
      b.fill(0, 64, 8);
      const remote = { address: b.address(), rkey: b.region.rkey };
      a.send({ opcode: WrOpcode.RDMA_READ, pieces: [{ offset: 128, length: 64 }], remote });
      assert.deepEqual(await world.statuses(a, 1), ['REM_ACCESS_ERR']);
      assert.ok(a.memory.subarray(128, 192).every((byte) => byte === 0));
    },
    ['rdma-read'],
  );

  claim('a piece of a region that is gone fails here', async (world) => {
    const { a } = world.connected();
    const { lkey } = a.region;
    a.region.destroy();
    a.send({ pieces: [{ offset: 0, length: 8, lkey }] });
    assert.deepEqual(await world.statuses(a, 1), ['LOC_PROT_ERR']);
  });

  claim('a piece with a wrong local key fails here, and nothing leaves', async (world) => {
    const { a, b } = world.connected();
    b.receive({ offset: 0, length: 64 });
    a.send({ pieces: [{ offset: 0, length: 8, lkey: a.region.lkey ^ 0x5a5a }] });
    assert.deepEqual(await world.statuses(a, 1), ['LOC_PROT_ERR']);
    await world.quiet();
    assert.ok(!b.take().some(({ status }) => status === 0));
  });
});
