// What a disk says of itself, byte for byte, and what is said of disks that are not there.

import assert from 'node:assert/strict';
import { COMMANDS } from '../../../../../../samples/ulp/iser/scsi/commands/table.js';
import { MemoryBackend } from '../../../../../../samples/ulp/block/index.js';
import { LogicalUnit } from '../../../../../../samples/ulp/iser/scsi/index.js';
import { naaOf } from '../../../../../../samples/ulp/iser/scsi/unit/identity.js';
import { cdb, cdb16, OTHER, Scene, TARGET_NAME } from './scene.js';

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

describe('SCSI: INQUIRY', () => {
  const scene = new Scene();

  it('gives standard data of 96 bytes, cut at the allocation length', async () => {
    const whole = await scene.good('12 00 00 00 ff 00');
    const names = 'DAPL    disk            1   ';
    assert.equal(hex(whole.subarray(0, 8)), '000006125b000002');
    assert.equal(Buffer.from(whole.subarray(8, 36)).toString(), names);
    assert.equal(hex(whole.subarray(58, 66)), '00a00960046004c0');
    assert.equal(whole.length, 96);
    for (const length of [0, 1, 5, 36, 95, 96, 97]) {
      const { data, result } = await scene.run(`12 00 00 00 ${hex(Uint8Array.of(length))} 00`, {
        inBytes: length,
      });
      assert.deepEqual(data, Buffer.from(whole.subarray(0, length)));
      assert.equal(result.residual.kind, length > 96 ? 'underflow' : 'none');
    }
  });

  it('lists its pages in ascending order, each of which can be read', async () => {
    const pages = [...(await scene.good('12 01 00 00 ff 00')).subarray(4)];
    assert.deepEqual(pages, [0x00, 0x80, 0x83, 0xb0, 0xb1, 0xb2]);
    for (const page of pages) {
      const data = await scene.good(Uint8Array.of(0x12, 1, page, 0, 0xff, 0));
      assert.deepEqual([data[0], data[1]], [0, page]);
      assert.equal(new DataView(data.buffer, data.byteOffset).getUint16(2), data.length - 4);
    }
  });

  it('tells unit serial number, identifiers, limits and provisioning', async () => {
    assert.equal(hex(await scene.good('12 01 80 00 ff 00')), '00800006' + '6469736b2d30');
    const identifiers = await scene.good('12 01 83 00 ff 00');
    const naa = naaOf(scene.unit.identity).toString(16);
    assert.equal(hex(identifiers.subarray(4, 16)), `01030008${naa}`);
    assert.equal(naa[0], '3');
    assert.ok(Buffer.from(identifiers).includes(`${TARGET_NAME},t,0x0001`));
    const limits = new DataView(Uint8Array.from(await scene.good('12 01 b0 00 ff 00')).buffer);
    assert.equal(limits.getUint8(5), 128);
    assert.equal(limits.getUint32(20), 1 << 20);
    assert.equal(limits.getUint32(28), 8);
    assert.equal(hex(await scene.good('12 01 b2 00 ff 00')), '00b2000400e40200');
    assert.equal(hex(await scene.good('12 01 b1 00 06 00')), '00b1003c0001');
  });

  it('refuses pages that are not there, with the field that is at fault', async () => {
    const { sense } = await scene.run('12 01 b7 00 ff 00');
    assert.deepEqual(sense, { key: 5, asc: 0x24, ascq: 0, field: { inCdb: true, byte: 2 } });
    assert.equal(await scene.refused('12 00 80 00 ff 00'), '05/24/00');
    assert.equal(await scene.refused('12 02 00 00 ff 00'), '05/24/00');
  });
});

describe('SCSI: capacity and LUNs', () => {
  it('tells last block and block size, for 512 and 4096 bytes', async () => {
    const small = new Scene({ sizeBytes: 1 << 20 });
    assert.equal(hex(await small.good('25 00 00 00 00 00 00 00 00 00')), '000007ff00000200');
    const data = await small.good(cdb16(0x9e, 0, 32, 0x10));
    assert.equal(hex(data.subarray(0, 16)), '00000000000007ff000002000003c000');
    const large = new Scene({ sizeBytes: 2 ** 46, blockBytes: 4096 });
    assert.equal(hex(await large.good('25 00 00 00 00 00 00 00 00 00')), 'ffffffff00001000');
    const of = await large.good(cdb16(0x9e, 0, 16, 0x10));
    assert.equal(hex(of), '00000003ffffffff000010000000c000');
    assert.equal(await small.refused('25 00 00 00 00 01 00 00 00 00'), '05/24/00');
  });

  it('reports LUNs to any LUN, and refuses less room than for one', async () => {
    const scene = new Scene();
    for (const lun of [0, 5]) {
      const data = await scene.good('a0 00 00 00 00 00 00 00 00 ff 00 00', { lun });
      assert.equal(hex(data), '0000000800000000' + '0000000000000000');
    }
    const none = await scene.good('a0 00 01 00 00 00 00 00 00 ff 00 00');
    assert.equal(hex(none), '0000000000000000');
    assert.equal(await scene.refused('a0 00 00 00 00 00 00 00 00 0f 00 00'), '05/24/00');
    assert.equal(await scene.refused('a0 00 03 00 00 00 00 00 00 ff 00 00'), '05/24/00');
  });

  it('has an answer for LUNs without a unit', async () => {
    const scene = new Scene();
    const inquiry = await scene.good('12 00 00 00 ff 00', { lun: 1 });
    assert.deepEqual([inquiry[0], inquiry.length], [0x7f, 96]);
    assert.equal(await scene.refused('12 01 00 00 ff 00', { lun: 1 }), '05/24/00');
    const sense = await scene.good('03 00 00 00 12 00', { lun: 1 });
    assert.equal(hex(sense.subarray(0, 14)), '700005000000000a000000002500');
    assert.equal(await scene.refused('00 00 00 00 00 00', { lun: 1 }), '05/25/00');
    assert.equal(await scene.refused(cdb16(0x88, 0, 1), { lun: 16383 }), '05/25/00');
  });

  it('refuses names that SCSI cannot hold', () => {
    const backend = new MemoryBackend({ sizeBytes: 512 });
    const good = { vendor: 'DAPL', product: 'disk', revision: '1', serial: 's' };
    const make = (wrong: Partial<typeof good>) => () =>
      new LogicalUnit({ backend, identity: { ...good, ...wrong } });
    assert.doesNotThrow(make({}));
    assert.throws(make({ vendor: 'longer than 8' }), {
      message: 'vendor is "longer than 8", must be 1 to 8 characters of ASCII',
    });
    assert.throws(make({ serial: '' }), RangeError);
    assert.throws(make({ product: 'ä' }), RangeError);
  });
});

describe('SCSI: sense', () => {
  it('gives and ends a unit attention, and else has nothing to say', async () => {
    const scene = new Scene();
    scene.unit.attentions.raise(OTHER, 'RESET_OCCURRED');
    const told = await scene.good('03 00 00 00 12 00', { from: OTHER });
    assert.equal(hex(told.subarray(0, 14)), '700006000000000a000000002900');
    const nothing = await scene.good('03 01 00 00 12 00', { from: OTHER });
    assert.equal(hex(nothing), '7200000000000000');
  });

  it('is of the format that the control page says', async () => {
    const scene = new Scene();
    const select = cdb('15 10 00 00 10 00');
    const list = cdb('00 00 00 00 0a 0a 24 10 00 40 00 00 ff ff 00 00');
    await scene.good(select, { out: list });
    const { result } = await scene.run(cdb16(0x88, -1n, 1));
    assert.equal(result.sense[0], 0x72);
    assert.equal(hex(result.sense.subarray(0, 4)), '72052100');
  });
});

describe('SCSI: REPORT SUPPORTED OPERATION CODES', () => {
  const scene = new Scene();

  it('lists every command of the table, with and without timeouts', async () => {
    const all = Uint8Array.from(await scene.good('a3 0c 00 00 00 00 00 00 ff ff 00 00'));
    const view = new DataView(all.buffer);
    assert.equal(view.getUint32(0), 8 * COMMANDS.length);
    const listed = COMMANDS.map((_, i) => {
      const at = 4 + 8 * i;
      return [view.getUint8(at), view.getUint8(at + 5) & 1 ? view.getUint16(at + 2) : undefined];
    });
    assert.deepEqual(
      listed,
      COMMANDS.map(({ opcode, serviceAction }) => [opcode, serviceAction]),
    );
    const timed = await scene.good('a3 0c 80 00 00 00 00 00 ff ff 00 00');
    assert.equal(timed.length, 4 + 20 * COMMANDS.length);
  });

  it('tells of one command what its CDB may have', async () => {
    const read10 = await scene.good('a3 0c 01 28 00 00 00 00 ff ff 00 00');
    assert.equal(hex(read10), '0003000a' + '2818ffffffff1fffff00');
    const capacity = await scene.good('a3 0c 02 9e 00 10 00 00 ff ff 00 00');
    assert.equal(hex(capacity).slice(0, 12), '000300109e10');
    const either = await scene.good('a3 0c 03 9e 00 10 00 00 ff ff 00 00');
    assert.deepEqual(either, capacity);
    for (const unknown of ['a3 0c 01 ff 00 00', 'a3 0c 02 9e 00 01', 'a3 0c 03 28 00 01']) {
      const data = await scene.good(`${unknown} 00 00 ff ff 00 00`);
      assert.equal(data[1]! & 7, unknown.includes(' 28 ') ? 3 : 1, unknown);
    }
    assert.equal(await scene.refused('a3 0c 01 9e 00 10 00 00 ff ff 00 00'), '05/24/00');
    assert.equal(await scene.refused('a3 0c 02 28 00 00 00 00 ff ff 00 00'), '05/24/00');
    assert.equal(await scene.refused('a3 0c 04 28 00 00 00 00 ff ff 00 00'), '05/24/00');
  });

  it('is true: a bit that a command does not look at is refused, at its byte', async () => {
    for (const { opcode, serviceAction, usage, name } of COMMANDS) {
      for (let at = 1; at < usage.length; at++) {
        const known = at === 1 && serviceAction !== undefined ? 0x1f : usage[at]!;
        for (let bit = 1; bit < 256; bit <<= 1) {
          if ((known & bit) !== 0) continue;
          const bytes = new Uint8Array(usage.length);
          bytes[0] = opcode;
          bytes[1] = serviceAction ?? 0;
          bytes[at]! |= bit;
          const { sense } = await scene.run(bytes);
          assert.deepEqual(sense?.field, { inCdb: true, byte: at }, `${name} byte ${at}`);
        }
      }
    }
  });

  it('tells the task management functions', async () => {
    assert.equal(hex(await scene.good('a3 0d 00 00 00 00 00 00 00 04 00 00')), 'da000000');
    assert.equal(await scene.refused('a3 0d 00 00 00 00 00 00 00 03 00 00'), '05/24/00');
  });
});
