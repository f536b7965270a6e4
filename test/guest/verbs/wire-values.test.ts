import assert from 'node:assert/strict';

import { fromWire, toWire } from './wire-values.js';

describe('guest: values between ends', () => {
  it('64-bit numbers and fields that are undefined come back', () => {
    const value = {
      address: 0xffff_ffff_ffff_ffffn,
      rkey: 7,
      name: '12',
      list: [undefined, 0n, { immediate: undefined, ok: true }],
    };
    assert.deepEqual(fromWire(JSON.parse(toWire(value))), value);
  });
});
