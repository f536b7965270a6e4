import assert from 'node:assert/strict';
import { Fifo } from '../../../../core/flow/channel/fifo.js';

describe('channel: the queue', () => {
  it('hands out in order what it was given, whatever comes between', () => {
    const fifo = new Fifo<number>();
    const model: number[] = [];
    let next = 0;
    // It grows while its ring is turned, is emptied, and grows again.
    const steps = [
      { pushed: 3, shifted: 2 },
      { pushed: 8, shifted: 1 },
      { pushed: 20, shifted: 9 },
      { pushed: 0, shifted: 19 },
      { pushed: 200, shifted: 10 },
      { pushed: 5, shifted: 150 },
      { pushed: 0, shifted: 45 },
      { pushed: 1, shifted: 1 },
    ];
    for (const { pushed, shifted } of steps) {
      for (let i = 0; i < pushed; i++) {
        fifo.push(next);
        model.push(next);
        next++;
      }
      for (let i = 0; i < shifted; i++) {
        assert.equal(fifo.first, model[0]);
        assert.equal(fifo.shift(), model.shift());
        assert.equal(fifo.length, model.length);
      }
    }
    assert.deepEqual([fifo.length, fifo.first, fifo.shift()], [0, undefined, undefined]);
  });

  it('is drained in order, and goes on', () => {
    const fifo = new Fifo<string>();
    for (const each of ['a', 'b', 'c', 'd', 'e', 'f', 'g']) fifo.push(each);
    for (let i = 0; i < 5; i++) fifo.shift();
    for (const each of ['h', 'i', 'j']) fifo.push(each);
    assert.deepEqual(fifo.drain(), ['f', 'g', 'h', 'i', 'j']);
    assert.deepEqual([fifo.length, fifo.first], [0, undefined]);
    fifo.push('k');
    assert.equal(fifo.shift(), 'k');
  });

  it('keeps nothing of what has left it', () => {
    const fifo = new Fifo<object>();
    for (let i = 0; i < 100; i++) fifo.push({ i });
    while (fifo.length > 0) fifo.shift();
    const kept = fifo['items'];
    assert.deepEqual(kept, []);
    fifo.push({});
    fifo.shift();
    const few: readonly unknown[] = fifo['items'];
    assert.ok(few.length > 0 && few.every((each) => each === undefined));
  });
});
