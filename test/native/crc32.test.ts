import assert from 'node:assert/strict';
import { crc32 } from 'node:zlib';
import { pattern } from '../../plugins/testing/port/harness.js';
import { nativeAddon } from './addon.js';

describe('native CRC-32', () => {
  const bytes = pattern(70_000);

  for (const [index, name] of nativeAddon().crc32Variants().entries()) {
    it(`${name} agrees with zlib at every length up to 1200 and every alignment`, () => {
      const addon = nativeAddon();
      for (let length = 0; length <= 1200; length++) {
        const at = length % 67;
        const part = bytes.subarray(at, at + length);
        assert.equal(addon.crc32(index, part), crc32(part), `${String(length)} bytes`);
      }
    });

    it(`${name} agrees with zlib at random places and lengths`, () => {
      const addon = nativeAddon();
      const random = new Uint32Array(pattern(8000, 5).buffer);
      for (let i = 0; i + 1 < random.length; i += 2) {
        const at = (random[i] ?? 0) % 1000;
        const part = bytes.subarray(at, at + ((random[i + 1] ?? 0) % 69_000));
        assert.equal(addon.crc32(index, part), crc32(part), `${String(part.length)} bytes`);
      }
    });
  }

  it('offers the tables on every machine', () => {
    assert.equal(nativeAddon().crc32Variants()[0], 'tables');
  });
});
