// The guard of the contract over our own providers: the conformance suite makes no breach.
import assert from 'node:assert/strict';
import { type Breach, strict } from 'dapl/spi/decorators';
import { describeProvider } from 'dapl/testing';
import { mockFixture } from './mock-fixture.js';

describe('Our providers under the guard of the contract', () => {
  const breaches: Breach[] = [];
  const wrap = (provider: Parameters<typeof strict>[0]): typeof provider =>
    strict(provider, (breach) => void breaches.push(breach));
  describeProvider('mock, guarded', mockFixture({ wrap }));
  after(() => {
    assert.deepEqual(breaches.map(({ message }) => message).slice(0, 20), []);
  });
});
