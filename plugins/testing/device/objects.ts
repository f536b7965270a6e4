/** Objects of a device: their creation, and the order of their destruction. */
import assert from 'node:assert/strict';
import { Access } from 'dapl/spi';
import { MEMORY_BYTES } from './end.js';
import { deviceGroup } from './world.js';

export const objects = deviceGroup('Objects', (claim) => {
  claim('the device names itself, its limits and an address', ({ active }) => {
    const { attributes, gids, name, capabilities } = active;
    assert.ok(name.length > 0);
    assert.equal(gids[0]?.length, 16);
    assert.ok([256, 512, 1024, 2048, 4096].includes(attributes.activeMtuBytes));
    assert.ok(attributes.maxQueuePairWr >= 64 && attributes.maxSge >= 2);
    assert.ok(capabilities.has('rc'));
  });

  claim('memory of allocate is zeroed, and of the length asked for', ({ active }) => {
    const memory = new Uint8Array(active.allocate(5000));
    assert.ok(memory.length >= 5000);
    assert.ok(memory.every((byte) => byte === 0));
  });

  claim('a domain is not destroyed before what belongs to it', (world) => {
    const { a } = world.ends();
    assert.throws(() => a.pd.destroy(), { code: 'EBUSY' });
    assert.throws(() => a.cq.destroy(), { code: 'EBUSY' });
    a.qp.destroy();
    a.cq.destroy();
    assert.throws(() => a.pd.destroy(), { code: 'EBUSY' });
    a.region.destroy();
    a.pd.destroy();
  });

  claim(
    'a domain is not destroyed before its address handles',
    ({ active }) => {
      const pd = active.createProtectionDomain();
      const handle = active.createAddressHandle(pd, { gid: active.gids[0]!, localGidIndex: 0 });
      assert.throws(() => pd.destroy(), { code: 'EBUSY' });
      handle.destroy();
      pd.destroy();
    },
    ['ud'],
  );

  claim('memory that may move, shrink, or is not there is refused', ({ active }) => {
    const pd = active.createProtectionDomain();
    const resizable = Reflect.construct(ArrayBuffer, [
      4096,
      { maxByteLength: 8192 },
    ]) as ArrayBuffer;
    const detached = new Uint8Array(4096);
    structuredClone(detached.buffer, { transfer: [detached.buffer] });
    const pooled = Buffer.allocUnsafe(1 + (Buffer.poolSize >>> 4));
    for (const memory of [new Uint8Array(resizable), detached, pooled]) {
      assert.throws(() => pd.registerMemory(memory, Access.LOCAL_WRITE), { code: 'EINVAL' });
    }
    pd.destroy();
  });

  claim('a zero-based region begins at 0, whatever address is given', ({ active }) => {
    const pd = active.createProtectionDomain();
    const memory = new Uint8Array(active.allocate(MEMORY_BYTES));
    const region = pd.registerMemory(memory, Access.LOCAL_WRITE | Access.ZERO_BASED, 4096n);
    assert.equal(region.iova, 0n);
    region.destroy();
    pd.destroy();
  });

  claim('keys of regions differ', ({ active }) => {
    const pd = active.createProtectionDomain();
    const memory = new Uint8Array(active.allocate(MEMORY_BYTES));
    const regions = Array.from({ length: 8 }, () => pd.registerMemory(memory, 1));
    assert.equal(new Set(regions.map(({ lkey }) => lkey)).size, 8);
    for (const region of regions) assert.equal(region.lengthBytes, MEMORY_BYTES);
    for (const region of regions) region.destroy();
    pd.destroy();
  });

  claim('numbers of queue pairs differ, and are not used again soon', (world) => {
    const { a } = world.ends();
    const numbers = [a.qp.qpn];
    for (let i = 0; i < 8; i++) {
      const qp = a.queuePair();
      numbers.push(qp.qpn);
      qp.destroy();
    }
    assert.equal(new Set(numbers).size, numbers.length);
  });

  claim('rings hold what was asked for', (world) => {
    const { a } = world.ends({ maxWr: 50, minEntries: 100 });
    assert.ok(a.qp.sendRing.entries >= 50);
    assert.ok((a.qp.receiveRing?.entries ?? 0) >= 50);
    assert.ok(a.cq.ring.entries >= 100);
  });

  claim('more than its limits is refused', (world) => {
    const { a } = world.ends();
    const { maxQueuePairWr, maxSge } = world.active.attributes;
    for (const more of [{ maxSendWr: maxQueuePairWr + 1 }, { maxSendSge: maxSge + 1 }]) {
      assert.throws(() => a.queuePair(more), { code: 'EINVAL' });
    }
  });

  claim('the rings of a queue pair end with it', (world) => {
    const { a } = world.ends();
    const { sendRing, receiveRing } = a.qp;
    a.qp.destroy();
    assert.equal(sendRing.words.length, 0);
    assert.equal(receiveRing?.words.length, 0);
  });
});
