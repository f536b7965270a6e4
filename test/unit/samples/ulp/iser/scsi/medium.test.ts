// Blocks that are read, written and compared: every CDB size, residuals, faults of the medium.

import assert from 'node:assert/strict';
import {
  type BlockFault,
  FaultyBackend,
  MemoryBackend,
  PowerLossBackend,
  ReadOnlyBackend,
} from '../../../../../../samples/ulp/block/index.js';
import { pattern } from '../../block/backend-suite.js';
import { randomOf } from '../../block/random.js';
import { cdb, cdb16, Scene } from './scene.js';

const BLOCK = 512;

/** A CDB of a family: operation codes for 6, 10, 12 and 16 bytes. */
function sized(opcodes: readonly number[], size: number, lba: number, blocks: number): Uint8Array {
  const bytes = new Uint8Array(size);
  const view = new DataView(bytes.buffer);
  bytes[0] = opcodes[[6, 10, 12, 16].indexOf(size)]!;
  if (size === 6) {
    view.setUint32(0, (bytes[0] << 24) | lba);
    bytes[4] = blocks;
  } else if (size === 16) {
    view.setBigUint64(2, BigInt(lba));
    view.setUint32(10, blocks);
  } else {
    view.setUint32(2, lba);
    if (size === 10) view.setUint16(7, blocks);
    else view.setUint32(6, blocks);
  }
  return bytes;
}

const READ = [0x08, 0x28, 0xa8, 0x88] as const;
const WRITE = [0x0a, 0x2a, 0xaa, 0x8a] as const;
const WRITE_AND_VERIFY = [0, 0x2e, 0xae, 0x8e] as const;
const VERIFY = [0, 0x2f, 0xaf, 0x8f] as const;

describe('SCSI: READ and WRITE', () => {
  for (const size of [6, 10, 12, 16]) {
    it(`of ${size} bytes move blocks to and from their place`, async () => {
      const scene = new Scene();
      const data = pattern(7 * BLOCK, size);
      await scene.good(sized(WRITE, size, 3, 7), { out: data });
      assert.deepEqual(await scene.good(sized(READ, size, 3, 7)), Buffer.from(data));
      const around = await scene.good(sized(READ, size, 2, 9));
      assert.deepEqual(around.subarray(0, BLOCK), Buffer.alloc(BLOCK));
      assert.deepEqual(around.subarray(8 * BLOCK), Buffer.alloc(BLOCK));
      const out = data.subarray(0, BLOCK);
      assert.equal(await scene.refused(sized(READ, size, 2048, 1)), '05/21/00');
      assert.equal(await scene.refused(sized(READ, size, 2047, 2)), '05/21/00');
      assert.equal(await scene.refused(sized(WRITE, size, 2048, 1), { out }), '05/21/00');
    });
  }

  it('take 0 blocks of 6 bytes as 256, of others as none', async () => {
    const scene = new Scene();
    const data = await scene.good(sized(READ, 6, 0, 0), { inBytes: 256 * BLOCK });
    assert.equal(data.length, 256 * BLOCK);
    for (const size of [10, 12, 16]) {
      assert.equal((await scene.good(sized(READ, size, 0, 0))).length, 0);
      assert.equal(await scene.refused(sized(READ, size, 2048, 0)), '05/21/00');
    }
  });

  it('move more than the pool has, chunk by chunk', async () => {
    const scene = new Scene({ sizeBytes: 4 << 20, chunkBytes: 8192, chunks: 2 });
    const data = pattern((1 << 20) + 3 * BLOCK, 5);
    await scene.good(cdb16(0x8a, 1, data.length / BLOCK), { out: data });
    const read = await scene.good(cdb16(0x88, 1, data.length / BLOCK), { inBytes: data.length });
    assert.deepEqual(read, Buffer.from(data));
  });

  it('refuse more than the maximum transfer length', async () => {
    const scene = new Scene({ sizeBytes: 2 ** 40 });
    const { sense } = await scene.run(cdb16(0x88, 0, 65537));
    assert.deepEqual(sense, { key: 5, asc: 0x24, ascq: 0, field: { inCdb: true, byte: 10 } });
  });

  it('count bytes that the initiator expected or not, and touch none beyond either', async () => {
    const scene = new Scene();
    await scene.good(cdb16(0x8a, 0, 4), { out: new Uint8Array(4 * BLOCK).fill(1) });
    const residual = async (
      bytes: Uint8Array,
      options: { out?: Uint8Array; inBytes?: number },
    ): Promise<unknown> => (await scene.run(bytes, options)).result.residual;
    assert.deepEqual(await residual(cdb16(0x88, 0, 1), { inBytes: 0 }), {
      kind: 'overflow',
      bytes: 512,
    });
    assert.deepEqual(await residual(cdb16(0x88, 0, 2), { inBytes: 200 }), {
      kind: 'overflow',
      bytes: 824,
    });
    assert.deepEqual(await residual(cdb16(0x88, 0, 1), { inBytes: 10000 }), {
      kind: 'underflow',
      bytes: 9488,
    });
    const two = new Uint8Array(2 * BLOCK).fill(2);
    assert.deepEqual(await residual(cdb16(0x8a, 0, 1), { out: two }), {
      kind: 'underflow',
      bytes: 512,
    });
    assert.deepEqual(await residual(cdb16(0x8a, 1, 3), { out: two.subarray(0, 700) }), {
      kind: 'overflow',
      bytes: 836,
    });
    const blocks = await scene.good(cdb16(0x88, 0, 4));
    assert.deepEqual(
      [0, 1, 2, 3].map((i) => blocks[i * BLOCK]),
      [2, 2, 1, 1],
    );
  });

  it('are durable with FUA, and without a write cache', async () => {
    const disk = (): { backend: PowerLossBackend; scene: Scene } => {
      const backend = new PowerLossBackend({ sizeBytes: 1 << 20, random: randomOf(1) });
      return { backend, scene: new Scene({ backend, chunkBytes: 8192 }) };
    };
    const out = new Uint8Array(64 * BLOCK).fill(3);
    const plain = disk();
    await plain.scene.good(cdb16(0x8a, 0, 64), { out });
    assert.equal(plain.backend.volatileBlocks, 64);
    await plain.scene.good(cdb16(0x8a, 0, 64, 0x08), { out });
    assert.equal(plain.backend.volatileBlocks, 0);
    await plain.scene.good(cdb16(0x8a, 0, 1), { out: out.subarray(0, BLOCK) });
    await plain.scene.good(cdb16(0x88, 0, 1, 0x08));
    assert.equal(plain.backend.volatileBlocks, 0, 'a read with FUA is of the medium');
    const caching = cdb('00 00 00 00 08 12 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00');
    await plain.scene.good('15 10 00 00 18 00', { out: caching });
    await plain.scene.good(cdb16(0x8a, 0, 64), { out });
    await plain.scene.good(cdb16(0x93, 0, 8, 1));
    await plain.scene.good(cdb16(0x93, 0, 8), { out: out.subarray(0, BLOCK) });
    await plain.scene.good('42 00 00 00 00 00 00 00 18 00', {
      out: cdb('0016 0010 00000000 0000000000000004 00000002 00000000'),
    });
    assert.equal(plain.backend.volatileBlocks, 0);
    for (const opcode of [0x35, 0x91]) {
      const { backend, scene } = disk();
      await scene.good(cdb16(0x8a, 0, 64), { out });
      await scene.good(Uint8Array.of(opcode, 2));
      assert.equal(backend.volatileBlocks, 0);
    }
  });

  it('are refused where writing is', async () => {
    const scene = new Scene({
      backend: new ReadOnlyBackend(new MemoryBackend({ sizeBytes: 1 << 20 })),
    });
    const out = new Uint8Array(BLOCK);
    const writes: readonly (readonly [Uint8Array, Uint8Array])[] = [
      [cdb16(0x8a, 0, 1), out],
      [cdb16(0x8e, 0, 1), out],
      [cdb16(0x8b, 0, 1), out],
      [cdb16(0x93, 0, 1), out],
      [cdb('89 00 0000000000000000 000000 01 00 00'), new Uint8Array(2 * BLOCK)],
      [
        cdb('42 00 00 00 00 00 00 00 18 00'),
        cdb('0016 0010 00000000 00000000000000010000000100000000'),
      ],
    ];
    for (const [bytes, data] of writes) {
      assert.equal(await scene.refused(bytes, { out: data }), '07/27/00');
    }
    await scene.good(cdb16(0x88, 0, 1));
    const mode = await scene.good('1a 08 3f 00 ff 00');
    assert.equal(mode[2], 0x90);
  });
});

describe('SCSI: VERIFY and WRITE AND VERIFY', () => {
  for (const size of [10, 12, 16]) {
    it(`of ${size} bytes compare every byte when they are told to`, async () => {
      const scene = new Scene();
      const data = pattern(40 * BLOCK, size);
      const write = sized(WRITE_AND_VERIFY, size, 5, 40);
      write[1]! |= 0x02;
      await scene.good(write, { out: data });
      assert.deepEqual(await scene.good(sized(READ, size, 5, 40)), Buffer.from(data));
      const verify = sized(VERIFY, size, 5, 40);
      const { result } = await scene.run(verify, { out: data });
      assert.equal(result.status, 0);
      assert.deepEqual(result.residual, { kind: 'underflow', bytes: data.length });
      verify[1]! |= 0x02;
      await scene.good(verify, { out: data });
      data[33 * BLOCK + 5]! ^= 1;
      const { sense } = await scene.run(verify, { out: data });
      assert.deepEqual(sense, { key: 0x0e, asc: 0x1d, ascq: 0, information: 33n * 512n + 5n });
    });
  }

  it('compare one block with all (BYTCHK 3), and know no BYTCHK 2', async () => {
    const scene = new Scene();
    const block = pattern(BLOCK, 1);
    await scene.good(cdb16(0x93, 4, 100), { out: block });
    await scene.good(cdb16(0x8f, 4, 100, 0x06), { out: block });
    await scene.good(cdb16(0x8a, 50, 1), { out: pattern(BLOCK, 2) });
    assert.equal(await scene.refused(cdb16(0x8f, 4, 100, 0x06), { out: block }), '0e/1d/00');
    assert.equal(await scene.refused(cdb16(0x8f, 4, 1, 0x04), { out: block }), '05/24/00');
    assert.equal(await scene.refused(cdb16(0x8e, 4, 1, 0x06), { out: block }), '05/24/00');
  });

  it('PRE-FETCH asks only whether the blocks are there', async () => {
    const scene = new Scene();
    await scene.good(cdb16(0x90, 2047, 1));
    assert.equal(await scene.refused(cdb16(0x90, 2047, 2)), '05/21/00');
    assert.equal(await scene.refused('34 00 ff ff ff ff 00 00 01 00'), '05/21/00');
  });
});

describe('SCSI: a medium with faults', () => {
  const withFault = (fault: BlockFault): Scene =>
    new Scene({ backend: new FaultyBackend(new MemoryBackend({ sizeBytes: 1 << 20 }), [fault]) });
  const out = new Uint8Array(4 * BLOCK);

  it('gives the sense and the block of each', async () => {
    const cases = [
      ['medium-read', cdb16(0x88, 8, 4), undefined, '03/11/00'],
      ['medium-write', cdb16(0x8a, 8, 4), out, '03/0c/00'],
      ['no-space', cdb16(0x8a, 8, 4), out, '07/27/07'],
      ['read-only', cdb16(0x8a, 8, 4), out, '07/27/00'],
      ['gone', cdb16(0x88, 8, 4), undefined, '04/44/00'],
    ] as const;
    for (const [failure, bytes, data, expected] of cases) {
      const scene = withFault({ failure, from: 9n });
      const options = data === undefined ? {} : { out: data };
      assert.equal(await scene.refused(bytes, options), expected);
      const { sense } = await scene.run(bytes, options);
      assert.equal(sense?.information, 9n);
      await scene.good(cdb16(0x88, 0, 4));
      assert.deepEqual(scene.faults, []);
    }
  });

  it('ends a flush that fails with a write error', async () => {
    const scene = withFault({ failure: 'medium-write', calls: ['flush'] });
    assert.equal(await scene.refused(cdb16(0x91, 0, 0)), '03/0c/00');
    await scene.good(cdb16(0x8a, 8, 4), { out });
  });

  it('answers a mistake of the program, and tells of it', async () => {
    const backend = new MemoryBackend({ sizeBytes: 1 << 20 });
    backend.read = () => Promise.reject(new TypeError('a mistake'));
    const scene = new Scene({ backend });
    assert.equal(await scene.refused(cdb16(0x88, 8, 4)), '04/44/00');
    assert.match(String(scene.faults[0]), /a mistake/);
  });
});
