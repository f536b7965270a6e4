import assert from 'node:assert/strict';
import { Piece, Slab } from '../../../core/spi/internal/index.js';
import { f64, flag, struct, u32, withFields, withRows } from '../../../core/spi/layout/struct.js';

const HEAD = struct({ count: u32, open: flag, sum: f64(-Infinity), last: u32 });
const TAIL = struct({ mean: f64(), best: f64(7) }, HEAD.end);
const ROW = struct({ key: u32, value: u32 });
const ROWS = 5;

class Plain extends Piece {
  readonly firstRow: number;

  constructor(slab: Slab) {
    super(slab, TAIL.end * 4 + ROWS * ROW.end * 4);
    this.firstRow = this.firstWord + TAIL.end;
    Object.assign(this, HEAD.first, TAIL.first);
  }
}

const Record = withRows(withFields(withFields(Plain, HEAD), TAIL), ROW);

describe('Struct', () => {
  it('lays its fields out in the order of the table, doubles where a double may begin', () => {
    assert.deepEqual(HEAD.at, { count: 0, open: 1, sum: 1, last: 4 });
    assert.equal(HEAD.end, 5);
    assert.deepEqual(TAIL.at, { mean: 3, best: 4 });
    assert.equal(TAIL.end, 10);
  });

  it('has the first values of its table, and then what is written', () => {
    const slab = new Slab();
    const [one, other] = [new Record(slab), new Record(slab)];
    const read = ({ count, open, sum, last, mean, best }: typeof one): unknown[] => [
      count,
      open,
      sum,
      last,
      mean,
      best,
    ];
    assert.deepEqual(read(one), [0, false, -Infinity, 0, 0, 7]);
    Object.assign(one, {
      count: 2 ** 32 - 1,
      open: true,
      sum: 0.5,
      last: 3,
      mean: 1e300,
      best: -1,
    });
    assert.deepEqual(read(one), [2 ** 32 - 1, true, 0.5, 3, 1e300, -1]);
    assert.deepEqual(read(other), [0, false, -Infinity, 0, 0, 7]);
    assert.equal(one.words[one.firstWord + HEAD.at.last], 3);
    assert.equal(one.doubles[one.firstDouble + TAIL.at.mean], 1e300);
    one.open = false;
    assert.deepEqual([one.open, one.count, one.sum], [false, 2 ** 32 - 1, 0.5]);
  });

  it('has rows, by their numbers', () => {
    const record = new Record(new Slab());
    for (let row = 0; row < ROWS; row++) {
      record.setKey(row, row + 1);
      record.setValue(row, 100 + row);
    }
    const rows = Array.from({ length: ROWS }, (_, row) => [record.key(row), record.value(row)]);
    assert.deepEqual(rows, [
      [1, 100],
      [2, 101],
      [3, 102],
      [4, 103],
      [5, 104],
    ]);
    assert.equal(record.best, 7);
  });

  it('keeps nothing in the object, and reads nothing once the piece is free', () => {
    const record = new Record(new Slab());
    record.count = 5;
    assert.ok(!Object.keys(record).includes('count'));
    record.free();
    record.count = 6;
    assert.deepEqual([record.count, record.mean, record.key(0)], [undefined, undefined, undefined]);
  });
});
