// A behaviour that fails because the fault it is about never came says so.
import assert from 'node:assert/strict';
import { runProvider } from 'dapl/testing';
import { mockFixture } from './mock-fixture.js';

describe('Faults of the conformance suite that are never hit', () => {
  it('are named by the behaviour that fails', async () => {
    const plain = mockFixture();
    const fixture = {
      ...plain,
      openPair: async () => ({
        ...(await plain.openPair()),
        addFault: () => ({ hits: 0, remove: () => undefined }),
      }),
    };
    const wanted = 'Losing packets: local ACK timeout, retry limit not exceeded';
    const results = await runProvider(fixture, { filter: (title) => title.startsWith(wanted) });
    assert.equal(results.length, 1);
    assert.match(results[0]?.message ?? '', /a fault was never hit \(drop of passive\): the MTU/);
  });
});
