import assert from 'node:assert/strict';
import { BufferPool, type BufferPoolOptions } from '../../../core/flow/index.js';
import { failureOf, type FlowWorld, flowWorld, leftOf } from '../../support/flow-scene.js';

describe('flow: pool of registered buffers', () => {
  let world: FlowWorld;
  beforeEach(async () => {
    world = await flowWorld();
  });
  afterEach(() => world.close());

  const pool = (options: Partial<BufferPoolOptions> = {}): BufferPool =>
    new BufferPool({ pz: world.client.createPz(), bufferBytes: 100, ...options });

  it('lends each buffer once, and none that overlaps another', async () => {
    const some = pool({ maxBuffers: 5, slabBuffers: 2 });
    const leases = await Promise.all(Array.from({ length: 5 }, () => some.take()));
    leases.forEach((lease, i) => lease.bytes.fill(i + 1));
    leases.forEach((lease, i) => {
      assert.deepEqual([...new Set(lease.bytes)], [i + 1]);
      assert.equal(lease.segment().lengthBytes, 100);
      assert.deepEqual([...new Set(lease.segment(7, 3).bytes)], [i + 1]);
    });
    assert.deepEqual([some.size, some.lent, some.tryTake()], [5, 5, undefined]);
  });

  it('grows in slabs up to its bound, and registers nothing before', async () => {
    const some = pool({ maxBuffers: 3, slabBuffers: 2 });
    assert.match(leftOf(world.client), /lmrs 0/);
    const first = await some.take();
    assert.deepEqual([some.size, leftOf(world.client)], [2, 'eps 0 lmrs 1 pzs 1 evds 1 psps 0']);
    const rest = [await some.take(), await some.take()];
    assert.equal(some.size, 3);
    for (const lease of [first, ...rest]) lease.release();
    assert.equal(some.lent, 0);
  });

  it('serves those that wait in order; one that leaves takes no buffer along', async () => {
    const some = pool({ maxBuffers: 1 });
    const lease = await some.take();
    const late = failureOf(some.take({ timeoutMs: 1 }));
    const next = some.take();
    assert.match((await late).message, /all 1 buffers are lent/);
    lease.release();
    const taken = await next;
    assert.equal(taken.isReleased, false);
    taken.release();
    assert.equal(some.lent, 0);
  });

  it('refuses a second release, and use after the release', async () => {
    const some = pool();
    const lease = await some.take();
    lease.release();
    const state = { code: 'DAT_INVALID_STATE', message: /the buffer has been released/ };
    assert.throws(() => lease.release(), state);
    assert.throws(() => lease.bytes, state);
    assert.throws(() => lease.segment(), state);
    lease[Symbol.dispose]();
    assert.equal(some.lent, 0);
  });

  it('names the size of a buffer that a segment does not fit in', async () => {
    const lease = await pool().take();
    assert.throws(() => lease.segment(60, 50), {
      code: 'DAT_INVALID_PARAMETER',
      message: /60 bytes from 50 on: the buffer has 100/,
    });
    assert.throws(() => lease.segment(-1, 50), { message: /-1 bytes from 50 on/ });
    assert.throws(() => lease.segment(1, -1), { message: /1 bytes from -1 on/ });
  });

  it('is closed when nothing is lent, and frees its memory', async () => {
    const some = pool({ maxBuffers: 1 });
    const lease = await some.take();
    assert.throws(() => some.close(), {
      code: 'DAT_INVALID_STATE',
      message: /1 of 1 buffers are lent/,
    });
    assert.deepEqual([some.size, some.lent], [1, 1]);
    lease.release();
    some.close();
    some.close();
    assert.match(leftOf(world.client), /lmrs 0/);
    assert.deepEqual([some.size, some.lent], [0, 0]);
    assert.equal((await failureOf(some.take())).code, 'DAT_ABORT');
    assert.throws(() => some.tryTake(), { code: 'DAT_ABORT' });
  });

  it('refuses what it cannot be made of', () => {
    assert.throws(() => pool({ bufferBytes: 0 }), {
      code: 'DAT_INVALID_PARAMETER',
      message: /bufferBytes is 0; it must be an integer from 1 to 1073741824/,
    });
    assert.throws(() => pool({ pz: {} as never }), { message: /pz is an object; it must be a Pz/ });
  });
});
