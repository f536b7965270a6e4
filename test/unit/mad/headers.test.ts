import assert from 'node:assert/strict';

import fc from 'fast-check';

import * as mad from '../../../core/spi/modules/mad-header.js';
import * as rmpp from '../../../plugins/mad/wire/rmpp-header.js';
import { SeededRandom } from '../../../providers/mock/index.js';

const ZERO_MAD: mad.MadHeader = {
  baseVersion: 0,
  managementClass: 0,
  classVersion: 0,
  method: 0,
  status: 0,
  classSpecific: 0,
  transactionIdHi: 0,
  transactionIdLo: 0,
  attributeId: 0,
  attributeModifier: 0,
};

const ZERO_RMPP: rmpp.RmppHeader = {
  version: 0,
  type: 0,
  responseTime: 0,
  flags: 0,
  status: 0,
  segmentNumber: 0,
  payloadLengthOrNewWindowLast: 0,
};

/** All ones in a field alone: offset and hex. */
const MAD_IMAGES: Readonly<Record<keyof mad.MadHeader, readonly [number, string]>> = {
  baseVersion: [0, 'ff'],
  managementClass: [1, 'ff'],
  classVersion: [2, 'ff'],
  method: [3, 'ff'],
  status: [4, 'ffff'],
  classSpecific: [6, 'ffff'],
  transactionIdHi: [8, 'ffffffff'],
  transactionIdLo: [12, 'ffffffff'],
  attributeId: [16, 'ffff'],
  attributeModifier: [20, 'ffffffff'],
};

const RMPP_IMAGES: Readonly<Record<keyof rmpp.RmppHeader, readonly [number, string, number]>> = {
  version: [24, 'ff', 0xff],
  type: [25, 'ff', 0xff],
  responseTime: [26, 'f8', 0x1f],
  flags: [26, '07', 7],
  status: [27, 'ff', 0xff],
  segmentNumber: [28, 'ffffffff', 0xffffffff],
  payloadLengthOrNewWindowLast: [32, 'ffffffff', 0xffffffff],
};

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}

describe('MAD header', () => {
  it('has each field where the specification has it, and touches 24 bytes', () => {
    for (const [key, [offset, ones]] of Object.entries(MAD_IMAGES)) {
      const bytes = new Uint8Array(256).fill(0xa5);
      mad.emitMadHeader({ ...ZERO_MAD, [key]: parseInt(ones, 16) }, bytes);
      const expected = Buffer.alloc(24);
      expected.write(ones, offset, 'hex');
      assert.equal(hex(bytes.subarray(0, 24)), hex(expected), key);
      assert.ok(bytes.subarray(24).every((byte) => byte === 0xa5));
    }
  });

  it('parses what it emitted', () => {
    const u8 = fc.integer({ min: 0, max: 0xff });
    const u16 = fc.integer({ min: 0, max: 0xffff });
    const u32 = fc.integer({ min: 0, max: 0xffffffff });
    const header = fc.record({
      baseVersion: fc.constant(1),
      managementClass: u8,
      classVersion: u8,
      method: u8,
      status: u16,
      classSpecific: u16,
      transactionIdHi: u32,
      transactionIdLo: u32,
      attributeId: u16,
      attributeModifier: u32,
    });
    fc.assert(
      fc.property(header, (value) => {
        const bytes = new Uint8Array(256).fill(0xa5);
        mad.emitMadHeader(value, bytes);
        assert.deepEqual(mad.parseMadHeader(bytes), { ...value });
      }),
    );
  });

  it('refuses other lengths, other base versions and values that do not fit', () => {
    const bytes = new Uint8Array(256);
    assert.equal(mad.parseMadHeader(bytes), undefined, 'base version 0');
    bytes[0] = 1;
    assert.ok(mad.parseMadHeader(bytes));
    assert.equal(mad.parseMadHeader(bytes.subarray(1)), undefined);
    assert.throws(() => mad.emitMadHeader(ZERO_MAD, new Uint8Array(23)), /23 bytes.*at least 24/);
    for (const [key, [, ones]] of Object.entries(MAD_IMAGES)) {
      for (const value of [-1, parseInt(ones, 16) + 1, 0.5]) {
        const wrong = { ...ZERO_MAD, [key]: value };
        assert.throws(() => mad.emitMadHeader(wrong, bytes), new RegExp(`MAD ${key} is ${value}`));
      }
    }
  });

  it('tells responses from requests', () => {
    const is = (fields: Partial<mad.MadHeader>): boolean =>
      mad.isResponse({ ...ZERO_MAD, managementClass: mad.MadClass.PERF, ...fields });
    assert.equal(is({ method: mad.MadMethod.GET }), false);
    assert.equal(is({ method: mad.MadMethod.GET_RESP }), true);
    assert.equal(is({ method: mad.MadMethod.TRAP_REPRESS }), true);
    assert.equal(is({ managementClass: mad.MadClass.CM, method: mad.MadMethod.SEND }), false);
    assert.equal(is({ managementClass: mad.MadClass.BM, attributeModifier: 1 }), true);
    assert.equal(is({ attributeModifier: 1 }), false);
  });

  it('knows the header lengths of the classes', () => {
    const length = (managementClass: number): number =>
      mad.classHeaderLength(managementClass, false);
    assert.deepEqual(
      [0x07, 0x03, 0x06, 0x10, 0x12, 0x30, 0x4f, 0x09].map(length),
      [24, 56, 64, 64, 64, 40, 40, 24],
    );
    assert.equal(mad.classHeaderLength(0x09, true), 36);
    const vendor = new Uint8Array(256);
    vendor.set([0xff, 0x00, 0x14, 0x05, 0xff], 36);
    assert.equal(mad.vendorOui(vendor), 0x001405);
  });
});

describe('RMPP header', () => {
  it('has each field where the specification has it, and touches 12 bytes', () => {
    for (const [key, [offset, ones, value]] of Object.entries(RMPP_IMAGES)) {
      const bytes = new Uint8Array(256).fill(0xa5);
      rmpp.emitRmppHeader({ ...ZERO_RMPP, [key]: value }, bytes);
      const expected = Buffer.alloc(256, 0xa5);
      expected.fill(0, 24, 36).write(ones, offset, 'hex');
      assert.equal(hex(bytes), hex(expected), key);
      assert.deepEqual(rmpp.parseRmppHeader(bytes), { ...ZERO_RMPP, [key]: value });
    }
  });

  it('refuses other lengths and values that do not fit', () => {
    assert.equal(rmpp.RMPP_DATA_LENGTH, 220);
    assert.equal(rmpp.parseRmppHeader(new Uint8Array(255)), undefined);
    assert.throws(() => rmpp.emitRmppHeader(ZERO_RMPP, new Uint8Array(40)), /40 bytes/);
    for (const [key, [, , max]] of Object.entries(RMPP_IMAGES)) {
      for (const value of [-1, max + 1, 0.5]) {
        const wrong = { ...ZERO_RMPP, [key]: value };
        assert.throws(
          () => rmpp.emitRmppHeader(wrong, new Uint8Array(256)),
          new RegExp(`RMPP ${key} is ${value}; it must be an integer from 0 to ${max}`),
        );
      }
    }
  });
});

describe('MAD parsers under fuzzing', () => {
  it('never throw, over 100,000 buffers', () => {
    const random = new SeededRandom(13);
    let accepted = 0;
    for (let round = 0; round < 100_000; round += 1) {
      const bytes = random.bytes(round % 2 === 0 ? 256 : random.below(300));
      if (random.below(2) === 0 && bytes.length > 0) bytes[0] = 1;
      const header = mad.parseMadHeader(bytes);
      const transfer = rmpp.parseRmppHeader(bytes);
      assert.equal(transfer !== undefined, bytes.length === 256);
      assert.equal(header !== undefined, bytes.length === 256 && bytes[0] === 1);
      if (header !== undefined) {
        accepted += 1;
        assert.equal(typeof mad.isResponse(header), 'boolean');
      }
    }
    assert.ok(accepted > 20_000);
  });
});
