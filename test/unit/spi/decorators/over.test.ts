import assert from 'node:assert/strict';
import { over } from 'dapl/spi/decorators';

class Inner {
  private count = 0;
  level = 1;
  optional?(): string;
  next(): number {
    return ++this.count;
  }
  twice(): number {
    return this.next() + this.next();
  }
  get seen(): number {
    return this.count;
  }
}

describe('Members over those of an object', () => {
  it('stand in front; all else is the object, and of its class', () => {
    const inner = new Inner();
    const outer = over(inner, { next: () => -1 });
    assert.equal(outer.next(), -1);
    assert.equal(outer.twice(), 3, 'its own calls of itself are left alone');
    assert.equal(outer.seen, 2);
    assert.ok(outer instanceof Inner);
    outer.level = 7;
    assert.equal(inner.level, 7);
  });

  it('has the optional members that the object has, unless they are taken away', () => {
    const plain = over(new Inner(), {});
    assert.ok(!('optional' in plain));
    const able = Object.assign(new Inner(), { optional: () => 'yes' });
    assert.equal(over(able, {}).optional?.(), 'yes');
    const unable = over(able, { optional: undefined });
    assert.equal(unable.optional?.(), undefined);
    assert.ok(!('optional' in unable));
  });

  it('stands over a frozen object, and hands out the same method each time', () => {
    const frozen = Object.freeze({ name: 'x', call: () => 1, other: () => 2 });
    const outer = over(frozen, { call: () => 3 });
    assert.deepEqual([outer.call(), outer.other(), outer.name], [3, 2, 'x']);
    assert.equal(outer.other, outer.other);
    assert.deepEqual(Object.keys({ ...outer }), ['name', 'call', 'other']);
  });

  it('is changed from outside as the object is: what replaces a member is called', () => {
    const outer = over(new Inner(), { next: () => -1 });
    outer.next = () => 5;
    assert.equal(outer.next(), 5);
    outer.twice = () => 6;
    assert.equal(outer.twice(), 6);
  });
});
