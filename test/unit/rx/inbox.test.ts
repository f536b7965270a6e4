/** A queue of things for one subscriber: how it hands them over. */
import assert from 'node:assert/strict';
import { Inbox } from '../../../core/stream/index.js';

describe('an inbox', () => {
  /** Handlers have had their time after so many of them in a turn. */
  const A_TURN = 4;

  function scene() {
    const tasks: (() => void)[] = [];
    const got: number[] = [];
    let left = A_TURN;
    const scheduler = {
      defer: (task: () => void): void => void tasks.push(task),
      mayStart: (): boolean => left-- > 0,
    };
    const inbox = new Inbox<number>('test$', 100, scheduler);
    /** A turn; what it has handed over. */
    const turn = (work?: () => void): readonly number[] => {
      left = A_TURN;
      work?.();
      for (const task of tasks.splice(0)) task();
      return got.splice(0);
    };
    return { inbox, turn, got };
  }

  it('hands over what comes at once, as far as the turn has time', () => {
    const { inbox, turn, got } = scene();
    inbox.stream$.subscribe((item) => got.push(item));
    turn();
    const push = (): void => {
      for (let i = 0; i < 10; i++) assert.equal(inbox.push(i), true);
    };
    assert.deepEqual(turn(push), [0, 1, 2, 3]);
    assert.deepEqual(turn(), [4, 5, 6, 7]);
    assert.deepEqual(turn(), [8, 9]);
    assert.deepEqual(turn(), []);
  });

  it('hands over what waits for a subscriber in turns, too, and in order', () => {
    const { inbox, turn, got } = scene();
    for (let i = 0; i < 6; i++) inbox.push(i);
    inbox.stream$.subscribe((item) => got.push(item));
    assert.deepEqual(turn(), [0, 1, 2, 3]);
    assert.deepEqual(
      turn(() => inbox.push(6)),
      [4, 5, 6],
    );
  });
});
