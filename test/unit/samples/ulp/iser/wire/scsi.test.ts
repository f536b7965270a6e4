import assert from 'node:assert/strict';

import * as wire from '../../../../../../samples/ulp/iser/wire/index.js';
import { hex, toHex } from './bytes.js';

describe('CDBs of an initiator', () => {
  for (const [made, bytes] of [
    [wire.testUnitReady.make({}), '00*6'],
    [wire.inquiry.make({ evpd: true, pageCode: 0xb0, allocationLength: 64 }), '1201b0004000'],
    [wire.modeSense6.make({ pageCode: 8, allocationLength: 192 }), '1a000800c000'],
    [wire.reportLuns.make({ allocationLength: 4096 }), 'a0000000000000001000 00*2'],
    [wire.readCapacity10.make({}), '25 00*9'],
    [wire.readCapacity16.make({ allocationLength: 32 }), '9e10 00*8 00000020 00*2'],
    [
      wire.read16.make({ lba: 0x0102030405060708n, transferLength: 9, fua: true, dpo: true }),
      '8818 0102030405060708 00000009 0000',
    ],
    [wire.write16.make({ lba: 1n, transferLength: 8 }), '8a00 0000000000000001 00000008 0000'],
    [wire.synchronizeCache10.make({}), '35 00*9'],
    [wire.unmap.make({ parameterListLength: 24 }), '42 00*6 0018 00'],
    [wire.compareAndWrite.make({ lba: 6n, blocks: 1 }), '8900 0000000000000006 000000 01 0000'],
  ] as const) {
    it(toHex(hex(bytes)), () => assert.equal(toHex(made.bytes), toHex(hex(bytes))));
  }

  it('a value that does not fit is refused by its name', () => {
    assert.throws(() => wire.synchronizeCache10.make({ blocks: 65536 }), {
      message: 'SYNCHRONIZE CACHE(10).blocks is 65536, must be 0 to 65535',
    });
    assert.throws(() => wire.read16.make({ lba: -1n }), RangeError);
  });
});

describe('data of SCSI commands', () => {
  it('INQUIRY data has blank padded names', () => {
    const data = hex('00 00 06 02 5b 000002');
    const names = new TextEncoder().encode('LIO-ORG disk0           4.0 ');
    const fields = wire.inquiryData.view(Buffer.concat([data, names]));
    assert.equal(fields.vendor, 'LIO-ORG');
    assert.equal(fields.product, 'disk0');
    assert.equal(fields.revision, '4.0');
    const made = wire.inquiryData.make({ vendor: 'a', product: 'b', revision: 'c' });
    assert.equal(Buffer.from(made.bytes).toString('latin1', 8), `a       b${' '.repeat(15)}c   `);
    assert.throws(() => wire.inquiryData.make({ revision: '1.2.3' }), /at most 4 characters/);
  });

  it('LUNs are peripheral below 256, flat from there on', () => {
    assert.equal(toHex(wire.emitLun(255)), '00ff000000000000');
    assert.equal(toHex(wire.emitLun(256)), '4100000000000000');
    assert.equal(toHex(wire.emitLun(16383)), '7fff000000000000');
    for (const lun of [0, 1, 255, 256, 16383]) assert.equal(wire.readLun(wire.emitLun(lun)), lun);
    assert.equal(wire.readLun(hex('4007 00*6')), 7);
    assert.equal(wire.readLun(hex('0001 0001 00*4')), undefined);
    assert.equal(wire.readLun(hex('0101 00*6')), undefined);
    assert.equal(wire.readLun(hex('c101 00*6')), undefined);
    assert.throws(() => wire.emitLun(16384), /LUN is 16384, must be 0 to 16383/);
  });

  it('REPORT LUNS data is cut where the list ends', () => {
    const data = hex('00000010 00*4 0000 00*6 4100 00*6 0007 00*6');
    assert.deepEqual(wire.readLuns(data), [0, 256]);
    assert.deepEqual(wire.readLuns(data.subarray(0, 20)), [0]);
    assert.throws(() => wire.readLuns(hex('00*7')), { fault: 'length' });
    assert.throws(() => wire.readLuns(hex('00000009 00*13')), { fault: 'field' });
  });
});

describe('sense data', () => {
  const sense = { key: 5, asc: 0x21, ascq: 2, information: 0x1234n };

  it('of fixed format is these bytes', () => {
    assert.equal(
      toHex(wire.emitFixedSense(sense)),
      toHex(hex('f0 00 05 00001234 0a 00000000 21 02 00*4')),
    );
    assert.deepEqual(wire.readSense(wire.emitFixedSense(sense)), sense);
    const far = { ...sense, information: 2n ** 32n };
    assert.equal(wire.readSense(wire.emitFixedSense(far)).information, undefined);
  });

  it('of descriptor format is these bytes', () => {
    assert.equal(
      toHex(wire.emitDescriptorSense(sense)),
      toHex(hex('72 05 21 02 000000 0c 00 0a 80 00 0000000000001234')),
    );
    const far = { ...sense, information: 2n ** 63n };
    assert.deepEqual(wire.readSense(wire.emitDescriptorSense(far)), far);
    assert.deepEqual(wire.readSense(hex('73 06 29 00')), {
      key: 6,
      asc: 0x29,
      ascq: 0,
      isDeferred: true,
    });
  });

  it('may be cut off, as targets do', () => {
    assert.deepEqual(wire.readSense(hex('70 00 05')), { key: 5, asc: 0, ascq: 0 });
  });

  it('is a length and the sense in a SCSI Response (captured)', () => {
    const segment = hex('0060 7000 05 00000000 0a 00000000 20 00 00*82');
    assert.deepEqual(wire.readSenseSegment(segment), { key: 5, asc: 0x20, ascq: 0 });
    assert.equal(toHex(wire.emitSenseSegment(hex('7000'))), '00027000');
    assert.equal(wire.readSenseSegment(hex('')), undefined);
    assert.throws(() => wire.readSenseSegment(hex('0003 7000')), {
      message: 'SenseLength is 3, must be at most 2',
    });
    assert.throws(() => wire.readSenseSegment(hex('0001 55')), { fault: 'field' });
  });
});

describe('serial numbers', () => {
  it('come round', () => {
    assert.equal(wire.serialAdd(0xffff_ffff, 1), 0);
    assert.equal(wire.serialAdd(0, -1), 0xffff_ffff);
    assert.equal(wire.serialDistance(1, 0xffff_ffff), 2);
    assert.equal(wire.serialBefore(0xffff_ffff, 0), true);
    assert.equal(wire.serialBefore(0, 0), false);
  });
});
