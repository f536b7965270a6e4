// Deviations of the conformance suite: run, must fail as said, and must exist.
import assert from 'node:assert/strict';
import { group } from '../../plugins/testing/suite/behaviour.js';
import { checkDeviations, deviates } from '../../plugins/testing/suite/plan.js';

describe('Deviations of the conformance suite', () => {
  const known = { why: 'the driver says 2', failsWith: /2 !== 1/ };

  it('pass when the behaviour fails as said', async () => {
    await deviates(() => Promise.reject(new Error('expected: 2 !== 1')), known);
  });

  it('fail when it fails otherwise, with what it met', async () => {
    const other = new Error('DAT_TIMEOUT_EXPIRED');
    await assert.rejects(
      deviates(() => Promise.reject(other), known),
      other,
    );
  });

  it('fail when the behaviour holds', async () => {
    await assert.rejects(
      deviates(() => Promise.resolve(), known),
      /the deviation \(the driver says 2\) has gone/,
    );
  });

  it('may hold by chance where they say so', async () => {
    await deviates(() => Promise.resolve(), { ...known, mayHold: true });
  });

  it('name behaviours that there are', () => {
    const groups = [group('Sending', (claim) => claim('a send', () => Promise.resolve()))];
    checkDeviations({ 'Sending: a send': known }, groups);
    const wrong = { 'Sending: nothing': known };
    assert.throws(() => checkDeviations(wrong, groups), /"Sending: nothing": no such behaviour/);
  });
});
