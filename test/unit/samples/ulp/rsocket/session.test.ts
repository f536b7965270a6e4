// Every interleaving of two sessions, to a fixpoint: bytes in order, none lost or written over
// before it was read, no credit below 0, no standstill; and planted bugs that the search finds.
import assert from 'node:assert/strict';
import { ReceiveWindow } from '../../../../../samples/ulp/rsocket/session/receive-window.js';
import { SendWindow } from '../../../../../samples/ulp/rsocket/session/send-window.js';
import { SESSION_TRANSITIONS, Session } from '../../../../../samples/ulp/rsocket/session/index.js';
import { immediateOf, Operation } from '../../../../../samples/ulp/rsocket/wire/index.js';
import { search } from '../../../../support/interleaving-search.js';
import { longIt } from '../../../../support/lane.js';
import { type PairScenario, SessionPair } from './session-pair.js';

const explore = (scenario: PairScenario): ReturnType<typeof search> =>
  search(() => new SessionPair(scenario));

const SMALL: PairScenario = { halfBytes: 2, credits: 2, writes: [[4], [1]] };
/** Its sides meet the end of a half, of the credits and of the buffer: planted bugs show here. */
const UNFILLED: PairScenario = { halfBytes: 3, credits: 3, writes: [[2, 2, 1], []] };
const SCENARIOS: Readonly<Record<string, PairScenario>> = {
  'more than the buffer, one byte back': SMALL,
  'more messages than credits': { halfBytes: 4, credits: 2, writes: [[1, 1, 1, 1], []] },
  'both ways': { halfBytes: 1, credits: 2, writes: [[2], [1]] },
  'halves that do not fill up': UNFILLED,
  'one side closes': { ...SMALL, closes: 0 },
  'the other side closes': { ...SMALL, closes: 1 },
};

/** What `npm test` explores. */
const QUICK = ['more messages than credits', 'both ways', 'one side closes'];

function planted<T extends object, K extends keyof T>(owner: T, name: K, value: T[K]): () => void {
  const whole = Object.getOwnPropertyDescriptor(owner, name)!;
  Object.defineProperty(owner, name, { configurable: true, writable: true, value });
  return () => Object.defineProperty(owner, name, whole);
}

const method = <T extends object, K extends keyof T>(owner: T, name: K): T[K] =>
  Object.getOwnPropertyDescriptor(owner, name)!.value as T[K];
const read = method(ReceiveWindow.prototype, 'read');
const giveCredits = method(ReceiveWindow.prototype, 'giveCredits');
const giveHalf = method(ReceiveWindow.prototype, 'giveHalf');
const fill = method(SendWindow.prototype, 'fill');

const PLANTS: Readonly<Record<string, readonly [plant: () => () => void, finds: RegExp]>> = {
  'a half is given before it is read': [
    () =>
      planted(ReceiveWindow.prototype, 'receiveData', function (this: ReceiveWindow, bytes) {
        receiveData.call(this, bytes);
        this['freeBytes'] += bytes;
      }),
    /byte \d|entry|room|data bytes/,
  ],
  'halves are given in the wrong turn': [
    () =>
      planted(ReceiveWindow.prototype, 'giveHalf', function (this: ReceiveWindow) {
        return this.halfBytes - giveHalf.call(this);
      }),
    /byte \d/,
  ],
  'credits are given twice': [
    () =>
      planted(ReceiveWindow.prototype, 'giveCredits', function (this: ReceiveWindow) {
        return giveCredits.call(this) + 1;
      }),
    /sequence limit/,
  ],
  'credits are never given': [
    () =>
      planted(ReceiveWindow.prototype, 'giveCredits', function (this: ReceiveWindow) {
        giveCredits.call(this);
        return this.credits;
      }),
    /stuck|sequence limit/,
  ],
  'messages that are read are not counted': [
    () =>
      planted(ReceiveWindow.prototype, 'read', function (this: ReceiveWindow, bytes) {
        const before = this['consumed'];
        read.call(this, bytes);
        this['consumed'] = before;
      }),
    /stuck|sequence limit/,
  ],
  'the next half is begun before the present one is full': [
    () =>
      planted(SendWindow.prototype, 'fill', function (this: SendWindow, bytes) {
        fill.call(this, bytes);
        if (this['used'] === 2) this['used']--;
      }),
    /byte \d|data bytes|read \d/,
  ],
};
const receiveData = method(ReceiveWindow.prototype, 'receiveData');

describe('rsocket: two sessions', () => {
  for (const [name, scenario] of Object.entries(SCENARIOS)) {
    const test = QUICK.includes(name) ? it : longIt;
    test(name, async () => {
      const { states, ends } = await explore(scenario);
      assert.ok(states > 50 && ends > 0, `${states} states, ${ends} ends`);
    });
  }

  for (const [name, [plant, finds]] of Object.entries(PLANTS)) {
    it(`finds: ${name}`, async () => {
      const restore = plant();
      try {
        await assert.rejects(explore(UNFILLED), finds);
      } finally {
        restore();
      }
    });
  }
});

describe('rsocket: the states of a session', () => {
  it('are those of the table, whatever comes', () => {
    for (const [state, row] of Object.entries(SESSION_TRANSITIONS)) {
      for (const [input, { next, send }] of Object.entries(row)) {
        // What is over stays over, and what is told is told once.
        assert.ok(state !== 'OVER' || (next === 'OVER' && send === undefined), `${state} ${input}`);
        assert.ok(input.startsWith('peer') === false || send === undefined, `${state} ${input}`);
      }
    }
  });

  it('numbers wrap at 65536, and a limit may have more bits', () => {
    const session = new Session(
      { halfBytes: 1 << 20, credits: 384, iomapSlots: 0 },
      peerOf(1 << 20, 384),
    );
    const list = {
      target: () => assert.fail('no entry came'),
      iomap: () => assert.fail('no area came'),
    };
    let consumed = 0;
    for (let n = 0; n < 200_000; n++) {
      assert.ok(session.sendable > 0, `message ${n}`);
      if (session.sendable === 1) break;
      session.sendData(1);
      consumed++;
      if (consumed % 100 === 0) {
        session.receive(immediateOf(Operation.TARGET, (consumed & 0xffff) + 384), 0, list);
      }
    }
    assert.ok(consumed > 2 * 65_536, `${consumed} messages`);
  });
});

function peerOf(length: number, credits: number): ConstructorParameters<typeof Session>[1] {
  return {
    isBigEndian: false,
    credits,
    iomapSlots: 0,
    targetList: { address: 0n, key: 1, length: 2 },
    buffer: { address: 0n, key: 2, length },
  };
}
