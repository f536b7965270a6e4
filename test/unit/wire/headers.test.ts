import assert from 'node:assert/strict';
import * as headers from '../../../providers/hca/wire/extended-headers.js';
import * as bth from '../../../core/spi/wire/bth.js';
import { aethMsn, hexOf, viewOf } from './golden-packets.js';

/** What `write` puts at offset 4 of a buffer of 0xa5, with the guards on both sides. */
function image(length: number, write: (view: DataView, offset: number) => void): string {
  const bytes = new Uint8Array(length + 8).fill(0xa5);
  write(viewOf(bytes), 4);
  assert.equal(hexOf(bytes.subarray(0, 4)), 'a5a5a5a5');
  assert.equal(hexOf(bytes.subarray(length + 4)), 'a5a5a5a5');
  return hexOf(bytes.subarray(4, length + 4));
}

function viewOfHex(hex: string): DataView {
  return viewOf(Uint8Array.from(Buffer.from(`a5a5a5a5${hex}`, 'hex')));
}

describe('BTH', () => {
  const write = (
    ...fields: Parameters<typeof bth.writeBth> extends [unknown, unknown, ...infer F] ? F : never
  ): string => image(12, (view, offset) => bth.writeBth(view, offset, ...fields));

  it('puts each field where the specification has it and nothing elsewhere', () => {
    assert.equal(write(0, 0, 0, 0), '0000ffff0000000000000000');
    assert.equal(write(0xff, 0, 0, 0), 'ff00ffff0000000000000000');
    assert.equal(write(0, bth.BTH_FLAG.solicited, 0, 0), '0080ffff0000000000000000');
    assert.equal(write(0, bth.BTH_FLAG.migrated, 0, 0), '0040ffff0000000000000000');
    assert.equal(write(0, bth.bthPad(1), 0, 0), '0030ffff0000000000000000');
    assert.deepEqual([0, 1, 2, 3, 4, 21].map(bth.bthPad), [0, 0x30, 0x20, 0x10, 0, 0x30]);
    assert.equal(write(0, 0, 0xffffff, 0), '0000ffff00ffffff00000000');
    assert.equal(write(0, bth.BTH_FLAG.ackRequest, 0, 0), '0000ffff0000000080000000');
    assert.equal(write(0, 0, 0, 0xffffff), '0000ffff0000000000ffffff');
  });

  it('cuts what is too wide instead of touching its neighbours', () => {
    assert.equal(write(0, 0xff, -1, -1), '00f0ffff00ffffff00ffffff');
  });

  it('reads each field from a header whose other bits are set', () => {
    const ones = viewOfHex('ffffffffffffffffffffffff');
    const zeros = viewOfHex('000000000000000000000000');
    assert.equal(bth.bthOpcode(ones, 4), 0xff);
    assert.equal(bth.bthPadCount(ones, 4), 3);
    assert.equal(bth.bthTransportVersion(ones, 4), 15);
    assert.equal(bth.bthDestQpn(ones, 4), 0xffffff);
    assert.equal(bth.bthPsn(ones, 4), 0xffffff);
    assert.equal(bth.bthPkey(ones, 4), 0xffff);
    for (const bit of [bth.bthSolicited, bth.bthAckReq]) {
      assert.equal(bit(ones, 4), true);
      assert.equal(bit(zeros, 4), false);
    }
    const others = viewOfHex('00cf0000ff0000007f000000');
    assert.equal(bth.bthPadCount(others, 4), 0);
    assert.equal(bth.bthAckReq(others, 4), false);
    assert.equal(bth.bthDestQpn(others, 4), 0);
    assert.equal(bth.bthPsn(others, 4), 0);
  });
});

describe('extension headers', () => {
  it('RETH', () => {
    const hex = '0123456789abcdeffedcba9880000000';
    const written = image(16, (view, offset) =>
      headers.writeReth(view, offset, 0x01234567, 0x89abcdef, 0xfedcba98, 0x80000000),
    );
    assert.equal(written, hex);
    const view = viewOfHex(hex);
    assert.equal(headers.rethVaHi(view, 4), 0x01234567);
    assert.equal(headers.rethVaLo(view, 4), 0x89abcdef);
    assert.equal(headers.rethRkey(view, 4), 0xfedcba98);
    assert.equal(headers.rethDmaLength(view, 4), 0x80000000);
  });

  it('AETH', () => {
    assert.equal(
      image(4, (view, offset) => headers.writeAeth(view, offset, 0xff, 0)),
      'ff000000',
    );
    assert.equal(
      image(4, (view, offset) => headers.writeAeth(view, offset, 0, -1)),
      '00ffffff',
    );
    const view = viewOfHex('62abcdef');
    assert.equal(headers.aethSyndrome(view, 4), 0x62);
    assert.equal(aethMsn(view, 4), 0xabcdef);
  });

  it('DETH', () => {
    const hex = '8001000000fedcba';
    assert.equal(
      image(8, (view, offset) => headers.writeDeth(view, offset, 0x80010000, 0xfedcba)),
      hex,
    );
    const view = viewOfHex('80010000fffedcba');
    assert.equal(headers.dethQkey(view, 4), 0x80010000);
    assert.equal(headers.dethSrcQpn(view, 4), 0xfedcba, 'the reserved byte is ignored');
  });

  it('XRCETH', () => {
    assert.equal(
      image(4, (view, offset) => headers.writeXrceth(view, offset, 0xff123456)),
      '00123456',
    );
    assert.equal(headers.xrcethSrqn(viewOfHex('ff123456'), 4), 0x123456);
  });

  it('ImmDt and IETH', () => {
    assert.equal(headers.immdtValue(viewOfHex('deadbeef'), 4), 0xdeadbeef);
    assert.equal(headers.iethRkey(viewOfHex('cafef00d'), 4), 0xcafef00d);
  });

  it('AtomicETH', () => {
    const hex = '0000000100000002000000030000000400000005fffffffefffffffd';
    const written = image(28, (view, offset) => {
      headers.writeAtomicTarget(view, offset, 1, 2, 3);
      headers.writeAtomicOperands(view, offset, 4, 5, 0xfffffffe, 0xfffffffd);
    });
    assert.equal(written, hex);
    const view = viewOfHex(hex);
    const read = [
      headers.atomicVaHi,
      headers.atomicVaLo,
      headers.atomicRkey,
      headers.atomicSwapAddHi,
      headers.atomicSwapAddLo,
      headers.atomicCompareHi,
      headers.atomicCompareLo,
    ].map((accessor) => accessor(view, 4));
    assert.deepEqual(read, [1, 2, 3, 4, 5, 0xfffffffe, 0xfffffffd]);
  });

  it('AtomicAckETH', () => {
    const hex = 'b25d9808888f4c0f';
    const written = image(8, (view, offset) =>
      headers.writeAtomicAckEth(view, offset, 0xb25d9808, 0x888f4c0f),
    );
    assert.equal(written, hex);
    assert.equal(headers.atomicAckHi(viewOfHex(hex), 4), 0xb25d9808);
    assert.equal(headers.atomicAckLo(viewOfHex(hex), 4), 0x888f4c0f);
  });
});
