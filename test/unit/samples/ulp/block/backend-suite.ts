/** What every backend and wrapper does: one suite for all of them. */
import assert from 'node:assert/strict';
import { type BlockBackend, BlockError } from '../../../../../samples/ulp/block/index.js';

export interface BackendUnderTest {
  readonly backend: BlockBackend;
  close(): Promise<void>;
}

/** Opens a backend of at least 4 MiB. */
export type OpenBackend = (blockBytes: 512 | 4096) => Promise<BackendUnderTest>;

const failure = (kind: string) => (error: unknown) =>
  error instanceof BlockError && error.failure === kind;

export function pattern(bytes: number, seed: number): Uint8Array {
  return Uint8Array.from({ length: bytes }, (_, i) => (i * 31 + seed * 17 + (i >> 8)) & 0xff);
}

export function behavesAsBackend(name: string, open: OpenBackend): void {
  for (const blockBytes of [512, 4096] as const) {
    describe(`${name}, blocks of ${blockBytes} bytes`, () => {
      let under: BackendUnderTest;
      let backend: BlockBackend;

      beforeEach(async () => {
        under = await open(blockBytes);
        backend = under.backend;
      });
      afterEach(() => under.close());

      const readBack = async (lba: bigint, blocks: number): Promise<Uint8Array> => {
        const into = new Uint8Array(blocks * blockBytes).fill(0xee);
        await backend.read(lba, into);
        return into;
      };

      it('reads zeroes before anything was written', async () => {
        assert.equal(backend.blockBytes, blockBytes);
        assert.deepEqual(await readBack(3n, 2), new Uint8Array(2 * blockBytes));
      });

      it('reads what was written, at both ends and over many blocks', async () => {
        const large = pattern(300 * blockBytes, 1);
        await backend.write(5n, large);
        const last = pattern(blockBytes, 2);
        await backend.write(backend.blockCount - 1n, last, { fua: true });
        await backend.write(0n, last);
        await backend.flush();
        assert.deepEqual(await readBack(5n, 300), large);
        assert.deepEqual(await readBack(backend.blockCount - 1n, 1), last);
        assert.deepEqual(await readBack(0n, 1), last);
        assert.deepEqual(await readBack(1n, 4), new Uint8Array(4 * blockBytes));
      });

      it('keeps what it was given, not the buffer', async () => {
        const buffer = pattern(blockBytes, 3);
        await backend.write(7n, buffer);
        buffer.fill(0);
        assert.deepEqual(await readBack(7n, 1), pattern(blockBytes, 3));
      });

      it('reads zeroes where blocks were discarded or zeroed, and nowhere else', async () => {
        const before = pattern(200 * blockBytes, 4);
        await backend.write(0n, before);
        await backend.discard(3n, 150n);
        await backend.writeZeroes(180n, 5n, { fua: true });
        const expected = Uint8Array.from(before);
        expected.fill(0, 3 * blockBytes, 153 * blockBytes);
        expected.fill(0, 180 * blockBytes, 185 * blockBytes);
        assert.deepEqual(await readBack(0n, 200), expected);
      });

      it('tells blocks that were written as mapped, and runs that cover the disk', async () => {
        await backend.write(10n, pattern(blockBytes, 5));
        assert.equal(backend.extentAt(10n).isMapped, true);
        let at = 0n;
        while (at < backend.blockCount) {
          const { blocks } = backend.extentAt(at);
          assert.ok(blocks > 0n);
          at += blocks;
        }
        assert.equal(at, backend.blockCount);
      });

      it('refuses blocks that are not there, and parts of blocks', async () => {
        const one = new Uint8Array(blockBytes);
        const two = new Uint8Array(2 * blockBytes);
        const end = backend.blockCount;
        await assert.rejects(backend.read(end, one), failure('out-of-range'));
        await assert.rejects(backend.read(end - 1n, two), failure('out-of-range'));
        await assert.rejects(backend.read(-1n, one), failure('out-of-range'));
        await assert.rejects(backend.write(end - 1n, two), failure('out-of-range'));
        await assert.rejects(backend.write(0n, one.subarray(1)), failure('out-of-range'));
        await assert.rejects(backend.discard(end, 1n), failure('out-of-range'));
        await assert.rejects(backend.writeZeroes(end - 1n, 2n), failure('out-of-range'));
        await assert.rejects(backend.discard(0n, -1n), failure('out-of-range'));
        await backend.discard(end, 0n);
      });

      it('is closed twice, and gone then', async () => {
        await backend.close();
        await backend.close();
        await assert.rejects(readBack(0n, 1), failure('gone'));
        await assert.rejects(backend.write(0n, new Uint8Array(blockBytes)), failure('gone'));
      });
    });
  }
}
