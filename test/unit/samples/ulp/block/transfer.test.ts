// Chunks are lent in turn, come back whatever happens, and nothing waits for itself.

import assert from 'node:assert/strict';
import { BufferPool, type ChunkWork, inChunks } from '../../../../../samples/ulp/block/index.js';

const CHUNK = 8192;
const poolOf = (chunks: number): BufferPool =>
  new BufferPool({ memory: new Uint8Array(chunks * CHUNK), chunkBytes: CHUNK });
const never = new AbortController().signal;
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('buffer pool', () => {
  it('lends each chunk to one at a time, and says where it is', async () => {
    const pool = poolOf(3);
    const leases = await Promise.all([1, 2, 3].map(() => pool.lease(never)));
    assert.deepEqual(leases.map(({ offset }) => offset).sort(), [0, CHUNK, 2 * CHUNK].sort());
    for (const { bytes, offset } of leases) {
      assert.equal(bytes.length, CHUNK);
      assert.equal(bytes.byteOffset, pool.memory.byteOffset + offset);
    }
    assert.equal(pool.tryLease(), undefined);
    leases[1]!.release();
    leases[1]!.release();
    assert.equal(pool.freeCount, 1);
  });

  it('serves those who wait in their order, and no newcomer before them', async () => {
    const pool = poolOf(1);
    const first = await pool.lease(never);
    const served: number[] = [];
    const waits = [1, 2].map((n) => pool.lease(never).then((lease) => (served.push(n), lease)));
    first.release();
    assert.equal(pool.tryLease(), undefined);
    (await waits[0]!).release();
    (await waits[1]!).release();
    assert.deepEqual(served, [1, 2]);
    assert.equal(pool.freeCount, 1);
  });

  it('forgets a wait that was aborted', async () => {
    const pool = poolOf(1);
    const held = await pool.lease(never);
    const abort = new AbortController();
    const aborted = pool.lease(abort.signal);
    const next = pool.lease(never);
    abort.abort(new Error('enough'));
    await assert.rejects(aborted, { message: 'enough' });
    held.release();
    (await next).release();
    assert.equal(pool.freeCount, 1);
    await assert.rejects(pool.lease(abort.signal), { message: 'enough' });
  });

  it('keeps a chunk for each borrower that has none, and serves who holds least', async () => {
    const memory = new Uint8Array(8 * CHUNK);
    const pool = new BufferPool({ memory, chunkBytes: CHUNK, borrowers: 3 });
    const greedy = [];
    for (let lease = pool.tryLease('a'); lease; lease = pool.tryLease('a')) greedy.push(lease);
    assert.equal(greedy.length, 6);
    const waits = [pool.lease(never, 'a'), pool.lease(never, 'a')];
    const second = await pool.lease(never, 'b');
    assert.equal(pool.tryLease('b'), undefined, 'one is left for a third');
    const third = pool.tryLease('c');
    assert.ok(third !== undefined);
    const served: string[] = [];
    const others = ['b', 'd', 'b'].map((name) =>
      pool.lease(never, name).then((lease) => (served.push(name), lease)),
    );
    await turn();
    for (const lease of greedy) lease.release();
    const got = await Promise.all([...others, ...waits]);
    assert.deepEqual(served, ['d', 'b', 'b']);
    for (const lease of [second, third, ...got]) lease.release();
    assert.equal(pool.freeCount, 8);
  });

  it('serves borrowers that hold nothing by turns', async () => {
    const pool = poolOf(1);
    const held = await pool.lease(never, 'a');
    const served: string[] = [];
    const all = ['a', 'a', 'b', 'b'].map(async (name) => {
      const lease = await pool.lease(never, name);
      served.push(name);
      lease.release();
    });
    held.release();
    await Promise.all(all);
    assert.deepEqual(served, ['a', 'b', 'a', 'b']);
  });

  it('refuses chunks of no whole pages, and memory for none', () => {
    const make = (bytes: number, chunkBytes: number) => () =>
      new BufferPool({ memory: new Uint8Array(bytes), chunkBytes });
    assert.throws(make(1 << 20, 4096), {
      message: /multiple of 4096 bytes, at least 8192, not 4096/,
    });
    assert.throws(make(1 << 20, 10000), RangeError);
    assert.throws(make(8191, 8192), { message: '8191 bytes of memory hold no chunk of 8192' });
  });
});

describe('transfers in chunks', () => {
  const record =
    (log: string[], name: string): ChunkWork =>
    async (offset, bytes) => {
      log.push(`${name} ${offset}+${bytes.length}`);
      await turn();
      log.push(`${name} ${offset} done`);
    };

  it('is at the next chunk while the last one is on the wire', async () => {
    const log: string[] = [];
    const pool = poolOf(2);
    const bytes = 2 * CHUNK + 100;
    await inChunks({ pool, bytes, signal: never }, record(log, 'a'), record(log, 'b'));
    const at = (entry: string): number => log.indexOf(entry);
    assert.ok(at(`a ${CHUNK}+${CHUNK}`) < at('b 0 done'), log.join());
    for (const offset of [0, CHUNK, 2 * CHUNK]) {
      assert.ok(
        at(`a ${offset} done`) < log.findIndex((entry) => entry.startsWith(`b ${offset}+`)),
      );
    }
    assert.ok(at('b 0 done') < at(`b ${CHUNK}+${CHUNK}`), 'one at a time');
    assert.ok(log.includes(`b ${2 * CHUNK}+100`));
    assert.equal(pool.freeCount, 2);
  });

  it('goes chunk by chunk with one chunk, of which many transfers make use', async () => {
    const pool = poolOf(1);
    const logs = await Promise.all(
      Array.from({ length: 8 }, async () => {
        const log: string[] = [];
        const transfer = { pool, bytes: 3 * CHUNK, signal: never };
        await inChunks(transfer, record(log, 'a'), record(log, 'b'));
        return log.length;
      }),
    );
    assert.deepEqual(logs, new Array(8).fill(12));
    assert.equal(pool.freeCount, 1);
  });

  it('cuts chunks at whole units, with scratch memory if it is asked for', async () => {
    const pool = poolOf(2);
    const parts: [number, number, number][] = [];
    const note: ChunkWork = async (offset, bytes, scratch) => {
      parts.push([offset, bytes.length, scratch.length]);
      assert.ok(bytes.byteOffset + bytes.length <= scratch.byteOffset);
    };
    const none: ChunkWork = async () => {};
    await inChunks(
      { pool, bytes: 9000, unitBytes: 3000, scratch: true, signal: never },
      note,
      none,
    );
    assert.deepEqual(parts, [
      [0, 3000, 3000],
      [3000, 3000, 3000],
      [6000, 3000, 3000],
    ]);
  });

  for (const [where, failing] of [
    ['first', 'a'],
    ['second', 'b'],
  ] as const) {
    it(`gives every chunk back when the ${where} work fails`, async () => {
      const pool = poolOf(2);
      const work =
        (name: string): ChunkWork =>
        async (offset) => {
          await turn();
          if (name === failing && offset === CHUNK) throw new Error(`${name} failed`);
        };
      const run = inChunks({ pool, bytes: 5 * CHUNK, signal: never }, work('a'), work('b'));
      await assert.rejects(run, { message: `${failing} failed` });
      assert.equal(pool.freeCount, 2);
    });
  }

  it('ends while it waits for a chunk', async () => {
    const pool = poolOf(1);
    const held = await pool.lease(never);
    const abort = new AbortController();
    const nothing: ChunkWork = () => assert.fail('there is no chunk');
    const run = inChunks({ pool, bytes: 1, signal: abort.signal }, nothing, nothing);
    abort.abort(new Error('enough'));
    await assert.rejects(run, { message: 'enough' });
    held.release();
    assert.equal(pool.freeCount, 1);
  });
});
