// The one runner of state tables: what a machine hears, and in which order.

import assert from 'node:assert/strict';
import {
  type Machine,
  row,
  type StateTable,
  TableRunner,
} from '../../../plugins/cm/common/table-runner.js';

type State = 'SHUT' | 'OPENING' | 'OPEN';
type Input = 'open' | 'done' | 'close';
type Action = 'unlock' | 'swing' | 'lock';

const TABLE: StateTable<State, Input, Action> = {
  SHUT: { open: row('OPENING', 'unlock', 'swing') },
  OPENING: { done: row('OPEN') },
  OPEN: { close: row('SHUT', 'lock') },
};

class Door implements Machine<State, Input> {
  state: State = 'SHUT';
  readonly heard: string[] = [];

  onUnexpected(input: Input): void {
    this.heard.push(`${input} is unexpected in ${this.state}`);
  }

  onInput(input: Input, from: State): void {
    this.heard.push(`${input}: ${from} to ${this.state}`);
  }

  onActionsDone(from: State): void {
    this.heard.push(`done, from ${from}, in ${this.state}`);
  }
}

describe('CM: runner of state tables', () => {
  const runner = new TableRunner<Door, State, Input, Action>(TABLE, {
    unlock: (door) => door.heard.push(`unlock in ${door.state}`),
    swing: (door) => void runner.dispatch(door, 'done'),
    lock: (door) => door.heard.push('lock'),
  });

  it('sets the state, tells the input, does the actions in order, and tells their end', () => {
    const door = new Door();
    assert.equal(runner.dispatch(door, 'open'), true);
    assert.deepEqual(door.heard, [
      'open: SHUT to OPENING',
      'unlock in OPENING',
      'done: OPENING to OPEN',
      'done, from OPENING, in OPEN',
      'done, from SHUT, in OPEN',
    ]);
  });

  it('does nothing for what the table has no row for, but tell the machine', () => {
    const door = new Door();
    assert.equal(runner.dispatch(door, 'close'), false);
    assert.deepEqual(door.heard, ['close is unexpected in SHUT']);
    assert.equal(door.state, 'SHUT');
  });

  it('keeps the state of each machine apart, and needs nothing but that', () => {
    const [one, other] = [new Door(), { state: 'SHUT' as State }];
    const plain = new TableRunner<Machine<State, Input>, State, Input, Action>(TABLE, {
      unlock: () => undefined,
      swing: () => undefined,
      lock: () => undefined,
    });
    assert.equal(plain.dispatch(other, 'open'), true);
    assert.equal(plain.dispatch(other, 'open'), false);
    assert.deepEqual([one.state, other.state], ['SHUT', 'OPENING']);
  });

  it('refuses a table that asks for what is not there', () => {
    const make = (): unknown => new TableRunner(TABLE, { unlock: () => undefined });
    assert.throws(make, /names an unknown action: swing/);
  });
});
