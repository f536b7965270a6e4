import assert from 'node:assert/strict';
import { gidFromIp } from '../../../core/spi/index.js';
import { ReadCopies, MOST_COPIED_BYTES } from '../../../providers/hca/memory/read-copies.js';
import type { Region } from '../../../providers/hca/memory/region.js';
import { MemoryPort } from '../../support/memory-port.js';

const region = {
  copyTo: (target: Uint8Array, offset: number) => target.fill(offset),
} as unknown as Region;

describe('kept memory', () => {
  it('has a bound: the oldest go', () => {
    const port = new MemoryPort(gidFromIp('10.0.0.1'));
    const kept = new ReadCopies(port, (number) => port.removeRegion(number));
    const quarter = MOST_COPIED_BYTES / 4;
    const copies = [1, 2, 3, 4].map((i) => kept.keep(region, i, quarter));
    assert.equal(kept.bytes, MOST_COPIED_BYTES);
    const last = kept.keep(region, 5, quarter + 1);
    assert.deepEqual(
      [...copies, last].map((copy) => kept.has(copy)),
      [false, false, true, true, true],
    );
    assert.equal(kept.bytes, 3 * quarter + 1);
    const there = port.regions.filter((one) => one !== undefined);
    assert.deepEqual(
      there.map(({ bytes }) => bytes[0]),
      [3, 4, 5],
    );
    for (const copy of [...copies, last]) kept.drop(copy);
    assert.equal(kept.bytes, 0);
  });
});
