import assert from 'node:assert/strict';
import { type Case, type Lane, nextOf, runCases } from './suite.js';

const done = (): Promise<void> => Promise.resolve();
const named = (name: string, more: Partial<Case> = {}): Case => ({ name, run: done, ...more });
const lane = (cases: readonly Case[], guestCount: number): Lane => ({
  ...{ cases, guestCount, cpuSeconds: () => 0, recover: done },
});

describe('guest: the order of cases', () => {
  const cases = [
    named('short'),
    named('long', { isLong: true }),
    named('two guests', { guests: 2 }),
    named('two guests, long', { guests: 2, isLong: true }),
  ];

  it('is what few lanes can run first, and the long before the others', () => {
    const order = (guestCount: number): string[] => {
      const taken = new Set<number>();
      for (;;) {
        const index = nextOf(cases, taken, guestCount);
        if (index < 0) return [...taken].map((at) => cases[at]?.name ?? '');
        taken.add(index);
      }
    };
    assert.deepEqual(order(2), ['two guests, long', 'two guests', 'long', 'short']);
    assert.deepEqual(order(1), ['long', 'short']);
  });

  it('does not change the order of the outcomes', async () => {
    const lines: string[] = [];
    const outcomes = await runCases([lane(cases, 2), lane(cases, 1)], (line) => lines.push(line));
    assert.deepEqual(
      outcomes.map(({ name, passed }) => [name, passed]),
      cases.map(({ name }) => [name, true]),
    );
    assert.equal(lines.length, cases.length);
  });

  it('leaves no case out without a word', async () => {
    await assert.rejects(
      runCases([lane(cases, 1)], () => undefined),
      /no lab has guests enough for: two guests/,
    );
  });
});
