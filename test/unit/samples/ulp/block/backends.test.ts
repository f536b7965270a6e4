// Each backend and wrapper passes the suite, and does what is its own.

import assert from 'node:assert/strict';
import { mkdtemp, rm, stat, truncate } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type BlockCall,
  BlockError,
  FaultyBackend,
  FileBackend,
  type FileBackendOptions,
  MemoryBackend,
  ReadOnlyBackend,
} from '../../../../../samples/ulp/block/index.js';
import { behavesAsBackend, pattern } from './backend-suite.js';

const SIZE = 4 << 20;
const failure = (kind: string) => (error: unknown) =>
  error instanceof BlockError && error.failure === kind;

async function openFile(
  options: Partial<FileBackendOptions> = {},
): Promise<{ backend: FileBackend; path: string; close: () => Promise<void> }> {
  const directory = await mkdtemp(join(tmpdir(), 'dapl-block-'));
  const path = options.path ?? join(directory, 'disk.img');
  const backend = await FileBackend.open({ path, sizeBytes: SIZE, ...options });
  const close = async (): Promise<void> => {
    await rm(directory, { recursive: true });
    await backend.close();
  };
  return { backend, path, close };
}

const inMemory = (blockBytes: number): MemoryBackend =>
  new MemoryBackend({ sizeBytes: SIZE, blockBytes });

behavesAsBackend('memory', async (blockBytes) => {
  const backend = inMemory(blockBytes);
  return { backend, close: () => backend.close() };
});
behavesAsBackend('file', (blockBytes) => openFile({ blockBytes }));
behavesAsBackend('file without holes', (blockBytes) =>
  openFile({ blockBytes, punchHole: undefined }),
);
behavesAsBackend('wrapper of faults, without any', async (blockBytes) => {
  const backend = new FaultyBackend(inMemory(blockBytes));
  return { backend, close: () => backend.close() };
});

describe('memory backend', () => {
  it('takes memory when blocks are written, and gives it back after a discard', async () => {
    const backend = new MemoryBackend({ sizeBytes: 2 ** 40 });
    assert.equal(backend.allocatedBytes, 0);
    await backend.write(2n ** 30n, pattern(1 << 18, 1));
    const taken = backend.allocatedBytes;
    assert.ok(taken >= 1 << 18 && taken <= (1 << 18) + (1 << 17), `${taken}`);
    await backend.discard(2n ** 30n, 512n);
    assert.equal(backend.allocatedBytes, 0);
    assert.equal(backend.extentAt(2n ** 30n).isMapped, false);
  });

  it('refuses sizes and blocks that are none', () => {
    const make = (sizeBytes: number, blockBytes?: number) => () =>
      new MemoryBackend({ sizeBytes, ...(blockBytes !== undefined && { blockBytes }) });
    assert.throws(make(511), { message: '511 bytes hold no block of 512' });
    assert.throws(make(1e6, 1024), { message: 'Blocks are of 512 or 4096 bytes, not 1024' });
    assert.throws(make(NaN), RangeError);
    assert.equal(make(1000)().blockCount, 1n);
  });
});

describe('file backend', () => {
  const allocated = async (path: string): Promise<number> => (await stat(path)).blocks * 512;

  it('makes a sparse file, which shrinks when blocks are discarded', async () => {
    const { backend, path, close } = await openFile();
    assert.ok((await allocated(path)) < 1 << 16);
    await backend.write(0n, pattern(2 << 20, 1));
    await backend.flush();
    const full = await allocated(path);
    assert.ok(full >= 2 << 20);
    await backend.discard(2048n, 2048n);
    await backend.flush();
    assert.ok((await allocated(path)) <= full - (1 << 20) + (1 << 16), 'the hole is there');
    assert.deepEqual(backend.extentAt(2048n), { isMapped: false, blocks: 2048n });
    await backend.write(3000n, pattern(512, 2));
    assert.deepEqual(backend.extentAt(2048n), { isMapped: false, blocks: 952n });
    assert.equal(backend.extentAt(3000n).isMapped, true);
    assert.equal((await stat(path)).size, SIZE);
    await close();
  });

  it('goes on with zeroes where the file system refuses holes, and asks no more', async () => {
    let asked = 0;
    const punchHole = async (): Promise<void> => {
      asked++;
      throw Object.assign(new Error('operation not supported'), { code: 'EOPNOTSUPP' });
    };
    const { backend, close } = await openFile({ punchHole });
    await backend.write(0n, pattern(4096, 1));
    await backend.discard(0n, 4n);
    await backend.discard(4n, 4n);
    const into = new Uint8Array(4096).fill(1);
    await backend.read(0n, into);
    assert.deepEqual(into, new Uint8Array(4096));
    assert.equal(asked, 1);
    assert.equal(backend.extentAt(0n).isMapped, true);
    await close();
  });

  it('finds its blocks again, and keeps the size that is there', async () => {
    const { backend, path, close } = await openFile();
    await backend.write(9n, pattern(512, 9), { fua: true });
    await backend.close();
    const again = await FileBackend.open({ path });
    const into = new Uint8Array(512);
    await again.read(9n, into);
    assert.deepEqual(into, pattern(512, 9));
    assert.equal(again.blockCount, BigInt(SIZE / 512));
    await again.close();
    const message = `${path} has ${SIZE} bytes, which 4096 would cut off`;
    await assert.rejects(FileBackend.open({ path, sizeBytes: 4096 }), { message });
    await assert.rejects(FileBackend.open({ path: `${path}.no` }), { code: 'ENOENT' });
    await close();
  });

  it('opens read-only what may not be written', async () => {
    const { path, close } = await openFile();
    const backend = await FileBackend.open({ path, readOnly: true });
    await backend.read(0n, new Uint8Array(512));
    await assert.rejects(backend.write(0n, new Uint8Array(512)), failure('read-only'));
    await assert.rejects(backend.discard(0n, 1n), failure('read-only'));
    await assert.rejects(backend.writeZeroes(0n, 1n), failure('read-only'));
    await backend.flush();
    await backend.close();
    await close();
  });

  it('says where a file has become too short', async () => {
    const { backend, path, close } = await openFile();
    await truncate(path, 1024);
    const read = backend.read(1n, new Uint8Array(1024));
    await assert.rejects(read, { failure: 'medium-read', lba: 1n, message: /ends at byte 1024/ });
    await close();
  });

  it('says that there is no space', async () => {
    const punchHole = async (): Promise<void> => {
      throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
    };
    const { backend, close } = await openFile({ punchHole });
    await assert.rejects(backend.discard(3n, 1n), { failure: 'no-space', lba: 3n });
    await close();
  });

  it('fails every flush after one that has failed, for nothing tells what was lost', async () => {
    const { backend, close } = await openFile();
    const file = backend['file'];
    const datasync = (): Promise<void> => Promise.resolve();
    file.datasync = () => Promise.reject(Object.assign(new Error('i/o error'), { code: 'EIO' }));
    await assert.rejects(backend.flush(), failure('medium-write'));
    file.datasync = datasync;
    await assert.rejects(backend.flush(), failure('medium-write'));
    await assert.rejects(backend.write(0n, new Uint8Array(512), { fua: true }), /i\/o error/);
    await assert.rejects(close(), failure('medium-write'));
  });
});

describe('read-only wrapper', () => {
  it('reads, and refuses all else', async () => {
    const below = inMemory(512);
    await below.write(1n, pattern(512, 1));
    const backend = new ReadOnlyBackend(below);
    const into = new Uint8Array(512);
    await backend.read(1n, into);
    assert.deepEqual(into, pattern(512, 1));
    assert.equal(backend.isReadOnly, true);
    const refused = { failure: 'read-only', lba: 1n };
    await assert.rejects(backend.write(1n), refused);
    await assert.rejects(backend.discard(1n), refused);
    await assert.rejects(backend.writeZeroes(1n), refused);
    await backend.flush();
    assert.equal(backend.extentAt(1n).isMapped, true);
    await backend.close();
  });
});

describe('wrapper of faults', () => {
  it('fails at its blocks alone, so many times', async () => {
    const fault = { failure: 'medium-read', from: 10n, blocks: 2n, times: 2 } as const;
    const backend = new FaultyBackend(inMemory(512), [{ ...fault, calls: ['read'] }]);
    await backend.read(0n, new Uint8Array(10 * 512));
    await backend.read(12n, new Uint8Array(512));
    await backend.write(10n, new Uint8Array(512));
    const over = backend.read(8n, new Uint8Array(4 * 512));
    await assert.rejects(over, { failure: 'medium-read', lba: 10n });
    await assert.rejects(backend.read(11n, new Uint8Array(512)), { lba: 11n });
    await backend.read(11n, new Uint8Array(512));
  });

  it('fails any call that it is told to, and writes nothing then', async () => {
    const below = inMemory(512);
    const backend = new FaultyBackend(below);
    const calls: Readonly<Record<BlockCall, () => Promise<void>>> = {
      read: () => backend.read(0n, new Uint8Array(512)),
      write: () => backend.write(0n, pattern(512, 1)),
      flush: () => backend.flush(),
      discard: () => backend.discard(0n, 1n),
      writeZeroes: () => backend.writeZeroes(0n, 1n),
    };
    for (const [name, call] of Object.entries(calls)) {
      backend.faults = [{ calls: [name as BlockCall], failure: 'no-space' }];
      await assert.rejects(call(), failure('no-space'));
      for (const [other, its] of Object.entries(calls)) if (other !== name) await its();
      backend.faults = [];
      await backend.writeZeroes(0n, 1n);
    }
    backend.faults = [{ failure: 'medium-write' }];
    await assert.rejects(backend.write(0n, pattern(512, 1)), failure('medium-write'));
    const into = new Uint8Array(512);
    await below.read(0n, into);
    assert.deepEqual(into, new Uint8Array(512));
  });

  it('is late as long as it is told to', async () => {
    let go: () => void = () => {};
    const delay = (): Promise<void> => new Promise((resolve) => (go = resolve));
    const backend = new FaultyBackend(inMemory(512), [{ calls: ['write'], delay }]);
    let isDone = false;
    const write = backend.write(0n, pattern(512, 1)).then(() => (isDone = true));
    await backend.read(0n, new Uint8Array(512));
    assert.equal(isDone, false);
    go();
    await write;
    assert.equal(isDone, true);
  });
});
