import assert from 'node:assert/strict';
import fc from 'fast-check';
import {
  LINUX_TRAIN_LIMITS,
  type PlannedPacket,
  planTrains,
  type Train,
} from '../support/train-planner.js';
import { nativeAddon } from './addon.js';

type Row = readonly [first: number, count: number, segmentBytes: number];

const run = (count: number, sizeBytes: number, path = 0, slot = 0): PlannedPacket[] =>
  Array.from({ length: count }, () => ({ path, slot, sizeBytes }));

const rows = (trains: readonly Train[]): Row[] =>
  trains.map((train) => [train.first, train.count, train.segmentBytes]);

/** Packets in, trains out: {first, count, segment size}. */
const golden: readonly [name: string, packets: PlannedPacket[], trains: Row[]][] = [
  ['nothing', [], []],
  ['one packet', run(1, 28), [[0, 1, 28]]],
  [
    'a 64 KiB SEND: 16 packets of 4 KiB, 15 to a datagram',
    run(16, 4112),
    [
      [0, 15, 4112],
      [15, 1, 4112],
    ],
  ],
  [
    'a 1 MiB SEND with a short end',
    [...run(255, 4112), ...run(1, 100)],
    [...Array.from({ length: 16 }, (_, i): Row => [15 * i, 15, 4112]), [240, 16, 4112]],
  ],
  [
    'a WRITE: FIRST is longer by its RETH',
    [...run(1, 4128), ...run(14, 4112), ...run(1, 2000)],
    [
      [0, 2, 4128], // a shorter one may follow, once
      [2, 14, 4112],
    ],
  ],
  [
    'a READ response: FIRST and LAST carry an AETH',
    [...run(1, 4116), ...run(3, 4112), ...run(1, 4116)],
    [
      [0, 2, 4116],
      [2, 2, 4112],
      [4, 1, 4116],
    ],
  ],
  [
    'small messages, more than a datagram has segments',
    run(300, 80),
    [
      [0, 128, 80],
      [128, 128, 80],
      [256, 44, 80],
    ],
  ],
  [
    'two destinations',
    [...run(3, 80, 1), ...run(2, 80, 2), ...run(1, 80, 1)],
    [
      [0, 3, 80],
      [3, 2, 80],
      [5, 1, 80],
    ],
  ],
  [
    'two processes behind one destination',
    [...run(3, 80, 1, 0), ...run(2, 80, 1, 7), ...run(2, 80, 1, 0)],
    [
      [0, 3, 80],
      [3, 2, 80],
      [5, 2, 80],
    ],
  ],
  [
    'ACKs between data',
    [...run(2, 4112), ...run(2, 20), ...run(2, 4112)],
    [
      [0, 3, 4112],
      [3, 1, 20],
      [4, 2, 4112],
    ],
  ],
];

describe('train planner', () => {
  for (const [name, packets, trains] of golden) {
    it(`plans ${name}`, () => {
      assert.deepEqual(rows(planTrains(nativeAddon(), packets)), trains);
    });
  }

  it('keeps to the limits of older kernels and of no segmentation at all', () => {
    const packets = run(130, 80);
    const older = { maxSegments: 64, maxBytes: 65507 };
    assert.deepEqual(rows(planTrains(nativeAddon(), packets, older)), [
      [0, 64, 80],
      [64, 64, 80],
      [128, 2, 80],
    ]);
    const none = { maxSegments: 1, maxBytes: 65507 };
    assert.equal(planTrains(nativeAddon(), packets, none).length, 130);
  });

  it('covers every packet once, in order, within the limits', () => {
    const packet = fc.record({
      path: fc.integer({ min: 0, max: 1 }),
      slot: fc.integer({ min: 0, max: 1 }),
      sizeBytes: fc.constantFrom(16, 20, 80, 4112, 4128),
    });
    fc.assert(
      fc.property(fc.array(packet, { maxLength: 400 }), (packets) => {
        let next = 0;
        for (const train of planTrains(nativeAddon(), packets)) {
          assert.equal(train.first, next);
          next += train.count;
          const members = packets.slice(train.first, next);
          const total = members.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
          assert.ok(train.count >= 1 && train.count <= LINUX_TRAIN_LIMITS.maxSegments);
          assert.ok(total <= LINUX_TRAIN_LIMITS.maxBytes);
          members.forEach(({ path, slot, sizeBytes }, i) => {
            assert.equal(path, members[0]?.path);
            assert.equal(slot, members[0]?.slot);
            if (i < members.length - 1) assert.equal(sizeBytes, train.segmentBytes);
            else assert.ok(sizeBytes <= train.segmentBytes);
          });
        }
        assert.equal(next, packets.length);
      }),
    );
  });
});
