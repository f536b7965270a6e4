// COMPARE AND WRITE, ORWRITE, UNMAP, WRITE SAME, GET LBA STATUS, mode pages, start and stop.

import assert from 'node:assert/strict';
import { FaultyBackend, MemoryBackend } from '../../../../../../samples/ulp/block/index.js';
import { pattern } from '../../block/backend-suite.js';
import { cdb, cdb16, OTHER, Scene } from './scene.js';

const BLOCK = 512;
const block = (value: number, blocks = 1): Uint8Array => new Uint8Array(blocks * BLOCK).fill(value);
const compareAndWrite = (lba: number, blocks: number): Uint8Array => {
  const bytes = cdb16(0x89, lba, 0);
  bytes[13] = blocks;
  return bytes;
};
const firstOf = (data: Uint8Array): number[] =>
  Array.from({ length: data.length / BLOCK }, (_, i) => data[i * BLOCK]!);

describe('SCSI: COMPARE AND WRITE', () => {
  it('writes when all is as expected, else nothing, and says where it differs', async () => {
    const scene = new Scene();
    await scene.good(compareAndWrite(4, 2), { out: Buffer.concat([block(0, 2), block(1, 2)]) });
    assert.deepEqual(firstOf(await scene.good(cdb16(0x88, 3, 4))), [0, 1, 1, 0]);
    const wrong = Buffer.concat([block(1), block(2), block(9, 2)]);
    const { sense } = await scene.run(compareAndWrite(4, 2), { out: wrong });
    assert.deepEqual(sense, { key: 0x0e, asc: 0x1d, ascq: 0, information: 512n });
    assert.deepEqual(firstOf(await scene.good(cdb16(0x88, 4, 2))), [1, 1]);
  });

  it('refuses too many blocks, and data that is not twice as many', async () => {
    const scene = new Scene();
    const out = block(0, 258);
    assert.equal(await scene.refused(compareAndWrite(0, 129), { out }), '05/24/00');
    await scene.good(compareAndWrite(0, 128), { out: block(0, 256) });
    assert.equal(await scene.refused(compareAndWrite(0, 1), { out: block(0, 4) }), '05/24/00');
    assert.equal(await scene.refused(compareAndWrite(0, 0), { out: block(0, 2) }), '05/24/00');
    assert.equal(await scene.refused(compareAndWrite(0, 3), { out: block(0, 4) }), '05/24/00');
    assert.equal(await scene.refused(compareAndWrite(2047, 2), { out: block(0, 4) }), '05/21/00');
    await scene.good(compareAndWrite(0, 0));
  });

  it('lets one of many win, with slow reads and writes in between', async () => {
    const later = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
    const faulty = new FaultyBackend(new MemoryBackend({ sizeBytes: 1 << 20 }), [{ delay: later }]);
    const scene = new Scene({ backend: faulty });
    const { target } = scene;
    const attempts = Array.from({ length: 8 }, async (_, i) => {
      const result = await target.execute({
        initiatorPort: i % 2 === 0 ? 'a,i,0x1' : 'b,i,0x2',
        lun: new Uint8Array(8),
        cdb: compareAndWrite(7, 1),
        attribute: 'SIMPLE',
        dataOutBytes: 2 * BLOCK,
        dataInBytes: 0,
        pull: async (offset, into) => {
          into.set(Buffer.concat([block(0), block(i + 1)]).subarray(offset, offset + into.length));
        },
        push: () => assert.fail('there is no data-in'),
        abort: new AbortController(),
      });
      return result.status;
    });
    const writers = Array.from({ length: 4 }, () => scene.target.execute(writeOf(100)));
    const statuses = await Promise.all(attempts);
    await Promise.all(writers);
    assert.equal(statuses.filter((status) => status === 0).length, 1);
    const winner = statuses.indexOf(0) + 1;
    assert.deepEqual(firstOf(await scene.good(cdb16(0x88, 7, 1))), [winner]);
  });
});

function writeOf(lba: number): Parameters<Scene['target']['execute']>[0] {
  return {
    initiatorPort: 'c,i,0x3',
    lun: new Uint8Array(8),
    cdb: cdb16(0x8a, lba, 1),
    attribute: 'SIMPLE',
    dataOutBytes: BLOCK,
    dataInBytes: 0,
    pull: async (_offset, into) => void into.fill(5),
    push: () => assert.fail('there is no data-in'),
    abort: new AbortController(),
  };
}

describe('SCSI: ORWRITE', () => {
  it('gives the OR of what was there and what came', async () => {
    const scene = new Scene({ chunkBytes: 8192 });
    const was = pattern(40 * BLOCK, 1);
    const came = pattern(40 * BLOCK, 2);
    await scene.good(cdb16(0x8a, 1, 40), { out: was });
    await scene.good(cdb16(0x8b, 1, 40), { out: came });
    const expected = was.map((byte, i) => byte | came[i]!);
    assert.deepEqual(await scene.good(cdb16(0x88, 1, 40)), Buffer.from(expected));
  });
});

/** UNMAP's parameter list. */
function unmapList(...ranges: readonly (readonly [lba: number, blocks: number])[]): Uint8Array {
  const list = Buffer.alloc(8 + 16 * ranges.length);
  list.writeUInt16BE(list.length - 2, 0);
  list.writeUInt16BE(16 * ranges.length, 2);
  ranges.forEach(([lba, blocks], i) => {
    list.writeBigUInt64BE(BigInt(lba), 8 + 16 * i);
    list.writeUInt32BE(blocks, 16 + 16 * i);
  });
  return list;
}
function unmap(list: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(10);
  bytes[0] = 0x42;
  new DataView(bytes.buffer).setUint16(7, list.length);
  return bytes;
}

describe('SCSI: UNMAP and GET LBA STATUS', () => {
  it('unmaps ranges, which read as zeroes and are told as deallocated', async () => {
    const scene = new Scene();
    await scene.good(cdb16(0x8a, 0, 512), { out: block(7, 512), inBytes: 0 });
    const list = unmapList([128, 128], [300, 2]);
    await scene.good(unmap(list), { out: list });
    assert.deepEqual(firstOf(await scene.good(cdb16(0x88, 126, 4))), [7, 7, 0, 0]);
    const status = await scene.good(cdb16(0x9e, 0, 24 + 16 * 4, 0x12));
    const view = new DataView(Uint8Array.from(status).buffer);
    const extents = Array.from({ length: (status.length - 8) / 16 }, (_, i) => [
      Number(view.getBigUint64(8 + 16 * i)),
      view.getUint32(16 + 16 * i),
      view.getUint8(20 + 16 * i),
    ]);
    assert.equal(view.getUint32(0), status.length - 4);
    assert.deepEqual(extents, [
      [0, 128, 0],
      [128, 128, 1],
      [256, 256, 0],
      [512, 1536, 1],
    ]);
    const one = await scene.good(cdb16(0x9e, 130, 24, 0x12));
    assert.equal(one.length, 24);
    assert.equal(await scene.refused(cdb16(0x9e, 2048, 24, 0x12)), '05/21/00');
  });

  it('changes nothing when any range is wrong', async () => {
    const scene = new Scene();
    await scene.good(cdb16(0x8a, 0, 8), { out: block(7, 8) });
    const refused = async (list: Uint8Array, cdbOf = unmap(list)): Promise<string> =>
      scene.refused(cdbOf, { out: list });
    assert.equal(await refused(unmapList([0, 1], [2048, 1])), '05/21/00');
    assert.equal(await refused(unmapList([0, 1], [2047, 2])), '05/21/00');
    const many = Array.from({ length: 257 }, () => [0, 1] as const);
    assert.equal(await refused(unmapList(...many)), '05/26/00');
    assert.equal(await refused(new Uint8Array(7)), '05/1a/00');
    const short = unmapList([0, 1]);
    assert.equal(await refused(short.subarray(0, 10), unmap(short)), '05/0e/03');
    assert.deepEqual(firstOf(await scene.good(cdb16(0x88, 0, 8))), new Array(8).fill(7));
    const large = new Scene({ sizeBytes: 2 ** 40 });
    const tooMuch = unmapList([0, 1 << 20], [1 << 20, 1]);
    assert.equal(await large.refused(unmap(tooMuch), { out: tooMuch }), '05/26/00');
  });

  it('takes no ranges, empty ones, and one at the very end', async () => {
    const scene = new Scene();
    await scene.good('42 00 00 00 00 00 00 00 00 00');
    for (const list of [unmapList(), unmapList([0, 0], [2048, 0])]) {
      await scene.good(unmap(list), { out: list });
    }
  });
});

describe('SCSI: WRITE SAME', () => {
  it('writes one block many times, to the end where it says 0', async () => {
    const scene = new Scene();
    const one = pattern(BLOCK, 9);
    await scene.good(cdb16(0x93, 10, 1000), { out: one });
    const read = await scene.good(cdb16(0x88, 9, 3));
    assert.deepEqual(read.subarray(0, BLOCK), Buffer.alloc(BLOCK));
    assert.deepEqual(read.subarray(2 * BLOCK), Buffer.from(one));
    assert.deepEqual(await scene.good(cdb16(0x88, 1009, 1)), Buffer.from(one));
    assert.deepEqual(firstOf(await scene.good(cdb16(0x88, 1010, 1))), [0]);
    await scene.good('41 00 00 00 07 00 00 00 00 00', { out: block(3) });
    assert.deepEqual(firstOf(await scene.good(cdb16(0x88, 2047, 1))), [3]);
    assert.deepEqual(firstOf(await scene.good(cdb16(0x88, 1791, 2))), [0, 3]);
  });

  it('unmaps zeroes alone, with data or without', async () => {
    const scene = new Scene();
    await scene.good(cdb16(0x8a, 0, 256), { out: block(7, 256) });
    await scene.good(cdb16(0x93, 0, 128, 0x08), { out: block(0) });
    assert.equal(scene.backend.extentAt(0n).isMapped, false);
    await scene.good(cdb16(0x93, 128, 128, 0x09));
    assert.equal(scene.backend.extentAt(128n).isMapped, false);
    await scene.good(cdb16(0x93, 0, 2, 0x08), { out: block(9) });
    assert.deepEqual(firstOf(await scene.good(cdb16(0x88, 0, 3))), [9, 9, 0]);
    await scene.good(cdb16(0x93, 0, 2, 0x01));
    assert.deepEqual(firstOf(await scene.good(cdb16(0x88, 0, 2))), [0, 0]);
  });

  it('refuses too many blocks, anchors, and data of other than a block', async () => {
    const scene = new Scene({ sizeBytes: 2 ** 30 });
    const out = block(1);
    assert.equal(await scene.refused(cdb16(0x93, 0, 131073), { out }), '05/24/00');
    assert.equal(await scene.refused(cdb16(0x93, 0, 0), { out }), '05/24/00');
    assert.equal(await scene.refused(cdb16(0x93, 0, 1, 0x10), { out }), '05/24/00');
    assert.equal(await scene.refused(cdb16(0x93, 0, 1), { out: out.subarray(1) }), '05/0e/03');
    assert.equal(await scene.refused(cdb16(0x93, 0, 1), { out: block(1, 2) }), '05/0e/03');
    assert.deepEqual(firstOf(await scene.good(cdb16(0x88, 0, 1))), [0]);
  });
});

describe('SCSI: mode pages', () => {
  const CONTROL = '0a 0a 20 10 00 40 00 00 ff ff 00 00';

  it('are told alone and all together, as they are, may be and began', async () => {
    const scene = new Scene();
    const all = await scene.good('1a 08 3f 00 ff 00');
    assert.equal(all[0], all.length - 1);
    assert.deepEqual([all[2], all[3]], [0x10, 0]);
    const control = await scene.good('1a 08 0a 00 ff 00');
    assert.deepEqual(control.subarray(4), Buffer.from(cdb(CONTROL)));
    assert.deepEqual(all.subarray(-12), control.subarray(4));
    const changeable = await scene.good('1a 08 4a 00 ff 00');
    assert.equal(Buffer.from(changeable.subarray(4)).toString('hex'), '0a0a04000800000000000000');
    const ten = Buffer.from(await scene.good('5a 00 0a 00 00 00 00 00 ff 00'));
    assert.equal(ten.readUInt16BE(0), ten.length - 2);
    assert.equal(ten.subarray(6, 16).toString('hex'), '00080000080000000200');
    const long = Buffer.from(await scene.good('5a 10 0a 00 00 00 00 00 ff 00'));
    assert.equal(long.subarray(4, 24).toString('hex'), '0100001000000000000008000000000000000200');
    assert.equal(await scene.refused('1a 08 ff 00 ff 00'), '05/39/00');
    assert.equal(await scene.refused('1a 08 1c 00 ff 00'), '05/24/00');
    assert.equal(await scene.refused('1a 08 0a 01 ff 00'), '05/24/00');
    assert.equal((await scene.good('1a 08 3f ff 04 00')).length, 4);
  });

  it('are changed where they may be, and others are told', async () => {
    const scene = new Scene();
    const list = cdb(`00 00 00 00 ${CONTROL.replace('20 10 00', '20 10 08')}`);
    await scene.good('15 10 00 00 10 00', { out: list });
    assert.equal(await scene.refused(cdb16(0x8a, 0, 1), { out: block(1) }), '07/27/02');
    assert.equal((await scene.good('1a 08 0a 00 ff 00'))[2], 0x90);
    assert.equal(await scene.refused('00 00 00 00 00 00', { from: OTHER }), '06/2a/01');
    await scene.good('00 00 00 00 00 00', { from: OTHER });
    const back = cdb(`00 00 00 00 00 00 00 00 ${CONTROL}`);
    await scene.good('55 10 00 00 00 00 00 00 14 00', { out: back });
    await scene.good(cdb16(0x8a, 0, 1), { out: block(1) });
    assert.equal(await scene.refused('00 00 00 00 00 00', { from: OTHER }), '06/2a/01');
    // What is as it was is no change.
    await scene.good('55 10 00 00 00 00 00 00 14 00', { out: back, from: OTHER });
    await scene.good('00 00 00 00 00 00');
  });

  it('are refused as a whole when a part of the list is wrong', async () => {
    const scene = new Scene();
    const wce = '08 12 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00';
    const refused = async (hex: string, select = '15 10 00 00'): Promise<string> => {
      const out = cdb(hex);
      const bytes = cdb(`${select} ${out.length.toString(16).padStart(2, '0')} 00`);
      return scene.refused(bytes, { out });
    };
    const header = '00 00 00 00';
    assert.equal(
      await refused(`${header} ${wce} ${CONTROL.replace('ff ff', '00 ff')}`),
      '05/26/00',
    );
    assert.equal(await refused(`${header} ${wce} 1c 0a`), '05/26/00');
    assert.equal(await refused(`${header} ${wce.slice(0, -3)}`), '05/1a/00');
    assert.equal(await refused(`${header} ${wce.replace('08 12', '08 11')}`), '05/26/00');
    assert.equal(await refused('00 00 00'), '05/1a/00');
    assert.equal(await refused(`${header} ${wce}`, '15 00 00 00'), '05/24/00');
    assert.equal(await refused(`${header} ${wce}`, '15 11 00 00'), '05/24/00');
    assert.equal(await refused(`00 00 00 08 00 00 08 00 00 00 10 00 ${wce}`), '05/26/00');
    assert.equal(await refused(`00 00 00 04 00 00 08 00 ${wce}`), '05/26/00');
    assert.equal(scene.unit.modePages.hasWriteCache, true, 'nothing has changed');
    const right = cdb(`00 00 00 08 00 00 00 00 00 00 02 00 ${wce}`);
    await scene.good('15 10 00 00 20 00', { out: right });
    assert.equal(scene.unit.modePages.hasWriteCache, false);
    await scene.good('15 10 00 00 00 00');
  });
});

describe('SCSI: START STOP UNIT', () => {
  it('stops and starts what needs the medium, and ejects nothing', async () => {
    const scene = new Scene();
    await scene.good('1b 00 00 00 00 00');
    assert.equal(await scene.refused('00 00 00 00 00 00'), '02/04/02');
    assert.equal(await scene.refused(cdb16(0x88, 0, 1)), '02/04/02');
    await scene.good('12 00 00 00 60 00');
    const sense = await scene.good('03 00 00 00 12 00');
    assert.deepEqual([sense[2], sense[12], sense[13]], [2, 4, 2]);
    await scene.good('1b 00 00 00 01 00');
    await scene.good(cdb16(0x88, 0, 1));
    assert.equal(await scene.refused('1b 00 00 00 02 00'), '05/24/00');
    assert.equal(await scene.refused('1b 00 00 00 10 00'), '05/24/00');
  });
});
