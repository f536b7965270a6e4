/** The bytes of a transfer that is being received, and what strangers may have us hold. */
import assert from 'node:assert/strict';
import { type RmppLimits } from '../../../plugins/mad/index.js';
import { DEFAULT_RMPP_LIMITS, RmppAllowance } from '../../../plugins/mad/provider.js';
import type { Forgettable } from '../../../plugins/mad/rmpp-limits.js';
import { Reassembly } from '../../../plugins/mad/rmpp-receiver.js';
import { RMPP_DATA, RMPP_HEADERS } from '../../support/rmpp-pair.js';

/** PayloadLength of a whole segment: it counts the data and the OUI. */
const SEGMENT = RMPP_DATA + 4;

function allowanceOf(limits: Partial<RmppLimits> = {}): RmppAllowance {
  return new RmppAllowance({ ...DEFAULT_RMPP_LIMITS, ...limits });
}

function begin(limits: Partial<RmppLimits> = {}): {
  allowance: RmppAllowance;
  reassembly: Reassembly;
} {
  const allowance = allowanceOf(limits);
  return { allowance, reassembly: new Reassembly(RMPP_HEADERS, allowance) };
}

/** A segment whose headers and data are made of its number. */
function segment(number: number): Uint8Array {
  return new Uint8Array(256).fill(number & 0xff).fill((number & 0xff) ^ 0x80, 0, RMPP_HEADERS);
}

describe('RMPP: reassembly', () => {
  it('has the headers of the first segment and the data of all, in any order', () => {
    for (const order of [
      [1, 2, 3],
      [3, 2, 1],
      [2, 1, 3],
    ]) {
      const { reassembly } = begin();
      for (const [at, number] of order.entries()) {
        assert.equal(reassembly.isComplete, false);
        const isLast = number === 3;
        const placed = reassembly.place(segment(number), number, isLast, isLast ? 14 : 0);
        assert.equal(placed, 'placed', `${order.join()}: ${at}`);
      }
      assert.ok(reassembly.isComplete);
      const expected = Buffer.concat([
        segment(1),
        segment(2).subarray(RMPP_HEADERS),
        segment(3).subarray(RMPP_HEADERS, RMPP_HEADERS + 10),
      ]);
      assert.deepEqual(Buffer.from(reassembly.bytes), expected);
    }
  });

  it('knows how far it is here in order, and whether there is a hole', () => {
    const { reassembly } = begin();
    const seen = [1, 3, 5, 2, 4].map((number) => {
      reassembly.place(segment(number), number, false, 0);
      return [reassembly.inOrder, reassembly.hasHole];
    });
    assert.deepEqual(seen, [
      [1, false],
      [1, true],
      [1, true],
      [3, true],
      [5, false],
    ]);
  });

  it('knows a segment that has come before, in order or ahead of it', () => {
    const { reassembly } = begin();
    for (const number of [1, 2, 4]) reassembly.place(segment(number), number, false, 0);
    for (const number of [0, 1, 2, 4]) {
      assert.equal(reassembly.place(segment(9), number, false, 0), 'duplicate', String(number));
    }
    reassembly.place(segment(3), 3, true, 0);
    assert.equal(reassembly.bytes[RMPP_HEADERS], 1);
  });

  it('has a last segment of 4 to 220 bytes: the OUI, and data or none', () => {
    for (const [length, expected] of [
      [3, 'inconsistent'],
      [4, 'placed'],
      [SEGMENT, 'placed'],
      [SEGMENT + 1, 'inconsistent'],
    ] as const) {
      const { reassembly } = begin();
      assert.equal(reassembly.place(segment(1), 1, false, 0), 'placed');
      assert.equal(reassembly.place(segment(2), 2, true, length), expected, String(length));
      if (expected !== 'placed') continue;
      assert.equal(reassembly.bytes.length, RMPP_HEADERS + RMPP_DATA + length - 4);
    }
  });

  it('has none behind the last', () => {
    const late = begin().reassembly;
    late.place(segment(1), 1, false, 0);
    late.place(segment(3), 3, true, 4);
    assert.equal(late.place(segment(4), 4, false, 0), 'inconsistent');
    const early = begin().reassembly;
    early.place(segment(1), 1, false, 0);
    early.place(segment(4), 4, false, 0);
    assert.equal(early.place(segment(3), 3, true, 4), 'inconsistent');
    assert.equal(early.place(segment(5), 5, true, 4), 'placed');
  });

  it('has as many segments as the first announces, of that length', () => {
    const announced = 2 * SEGMENT + 14;
    const rows: [number: number, isLast: boolean, length: number, expected: string][] = [
      [2, false, 0, 'placed'],
      [2, true, 14, 'inconsistent'],
      [3, false, 0, 'inconsistent'],
      [3, false, 14, 'inconsistent'],
      [3, true, 13, 'inconsistent'],
      [3, true, 15, 'inconsistent'],
      [3, true, 14, 'placed'],
      [4, false, 0, 'inconsistent'],
      [4, true, 14, 'inconsistent'],
    ];
    for (const [number, isLast, length, expected] of rows) {
      const { reassembly } = begin();
      assert.equal(reassembly.place(segment(1), 1, false, announced), 'placed');
      const placed = reassembly.place(segment(number), number, isLast, length);
      assert.equal(placed, expected, `${number} ${isLast} ${length}`);
    }
    const full = begin().reassembly;
    full.place(segment(1), 1, false, 2 * SEGMENT);
    assert.equal(full.place(segment(2), 2, true, SEGMENT), 'placed');
    const single = begin().reassembly;
    assert.equal(single.place(segment(1), 1, true, 14), 'placed');
    assert.deepEqual(Buffer.from(single.bytes), Buffer.from(segment(1).subarray(0, 50)));
  });

  it('takes what may be announced, and refuses a byte more before it holds anything', () => {
    const limits = { maxTransferBytes: 1000 };
    const one = begin(limits);
    assert.equal(one.reassembly.place(segment(1), 1, false, 1001), 'tooMuch');
    assert.equal(one.allowance.bytesHeld, 0);
    const other = begin(limits);
    assert.equal(other.reassembly.place(segment(1), 1, false, 1000), 'placed');
  });

  it('holds twice what has come at most, 4 KiB at least, never more than a transfer may', () => {
    const { reassembly, allowance } = begin({ maxTransferBytes: 20_000 });
    const last = Math.floor((20_000 - RMPP_HEADERS) / RMPP_DATA);
    const held: number[] = [];
    for (let number = 1; number < last; number++) {
      assert.equal(reassembly.place(segment(number), number, false, 0), 'placed');
      if (held.at(-1) !== allowance.bytesHeld) held.push(allowance.bytesHeld);
    }
    assert.deepEqual(held, [4096, 8192, 16_384, 20_000]);
    assert.equal(reassembly.place(segment(last + 1), last + 1, false, 0), 'tooMuch');
    assert.equal(reassembly.place(segment(last), last, true, SEGMENT), 'placed');
    // What came before it grew is all there.
    const { bytes } = reassembly;
    for (let number = 1; number <= last; number++) {
      const at = RMPP_HEADERS + (number - 1) * RMPP_DATA;
      const data = bytes.subarray(at, at + RMPP_DATA);
      assert.ok(data.length === RMPP_DATA && data.every((byte) => byte === number), `${number}`);
    }
    reassembly.release();
    assert.equal(allowance.bytesHeld, 0);
  });

  it('makes room for the segment that fills it to the last byte', () => {
    const limit = RMPP_HEADERS + 30 * RMPP_DATA;
    const { reassembly, allowance } = begin({ maxTransferBytes: limit });
    assert.equal(reassembly.place(segment(1), 1, false, 0), 'placed');
    assert.equal(reassembly.place(segment(30), 30, false, 0), 'placed');
    assert.equal(allowance.bytesHeld, limit);
    assert.equal(reassembly.place(segment(31), 31, false, 0), 'tooMuch');
  });

  it('holds no more than what fills it to the last byte needs', () => {
    // A class with headers of 64 bytes: 21 segments are 4096 bytes.
    const allowance = allowanceOf();
    const reassembly = new Reassembly(64, allowance);
    reassembly.place(segment(21), 21, false, 0);
    assert.equal(allowance.bytesHeld, 4096);
    reassembly.place(segment(22), 22, false, 0);
    assert.equal(allowance.bytesHeld, 8192);
  });

  it('lets go of all that it holds, once', () => {
    const { reassembly, allowance } = begin();
    for (const number of [1, 2, 4]) reassembly.place(segment(number), number, false, 0);
    reassembly.release();
    assert.equal(reassembly.bytes.length, 0);
    assert.equal(reassembly.hasHole, false);
    reassembly.release();
    assert.equal(allowance.bytesHeld, 0);
  });

  it('holds nothing for a segment that finds no room, and keeps what it has', () => {
    const { reassembly, allowance } = begin({ maxTotalBytes: 5000 });
    assert.equal(reassembly.place(segment(1), 1, false, 0), 'placed');
    assert.equal(reassembly.place(segment(40), 40, false, 0), 'tooMuch');
    assert.equal(allowance.bytesHeld, 4096);
    assert.equal(reassembly.hasHole, false);
  });
});

describe('RMPP: the allowance of all transfers', () => {
  it('is given to the last byte, to one transfer and in all', () => {
    const allowance = allowanceOf({ maxTransferBytes: 100, maxTotalBytes: 150 });
    assert.equal(allowance.take(101, 101), false);
    assert.ok(allowance.take(100, 100));
    assert.equal(allowance.take(51, 51), false);
    assert.ok(allowance.take(50, 100));
    assert.equal(allowance.bytesHeld, 150);
    allowance.giveBack(100);
    assert.equal(allowance.bytesHeld, 50);
    assert.ok(allowance.take(100, 100));
  });

  it('is so many transfers, in all and from one address, until they are over', () => {
    const allowance = allowanceOf({ maxTransfers: 3, maxTransfersPerPeer: 2 });
    assert.deepEqual(
      ['a', 'a', 'a', 'b', 'c'].map((peer) => allowance.admit(peer)),
      [true, true, false, true, false],
    );
    assert.equal(allowance.transfersHeld, 3);
    allowance.dismiss('a');
    assert.equal(allowance.transfersHeld, 2);
    assert.deepEqual(
      ['a', 'b'].map((peer) => allowance.admit(peer)),
      [true, false],
    );
    allowance.dismiss('b');
    // Still two of them, whatever others have done.
    assert.equal(allowance.admit('a'), false);
    allowance.dismiss('a');
    allowance.dismiss('a');
    assert.equal(allowance.transfersHeld, 0);
    assert.equal(allowance['byPeer'].size, 0, 'addresses that hold nothing are known still');
    assert.deepEqual(
      ['a', 'a', 'a'].map((peer) => allowance.admit(peer)),
      [true, true, false],
    );
  });

  it('remembers so many, and lets the oldest go for a new one', () => {
    const allowance = allowanceOf({ maxRemembered: 2 });
    const gone: number[] = [];
    const transfers = [0, 1, 2, 3, 4].map((number) => {
      const transfer: Forgettable = {
        abandon: () => {
          gone.push(number);
          allowance.unremember(transfer);
        },
      };
      return transfer;
    });
    for (const transfer of transfers.slice(0, 2)) allowance.remember(transfer);
    assert.deepEqual(gone, []);
    allowance.remember(transfers[2]!);
    assert.deepEqual(gone, [0]);
    // What is forgotten by itself makes room.
    allowance.unremember(transfers[1]!);
    allowance.remember(transfers[3]!);
    assert.deepEqual(gone, [0]);
    allowance.remember(transfers[4]!);
    assert.deepEqual(gone, [0, 2]);
  });
});
