// The guard of the contract over our own provider and its modules: what the conformance suite does
// with connections makes no breach. Devices alone are guarded by their own suite (device.test.ts).
import assert from 'node:assert/strict';
import { type Breach, strict } from 'dapl/spi/decorators';
import { describeGroups } from './groups-alone.js';
import { mockFixture } from './mock-fixture.js';
import { answering } from '../../plugins/testing/suite/connections/answering.js';
import { breaking } from '../../plugins/testing/suite/connections/breaking.js';
import { closing } from '../../plugins/testing/suite/connections/closing.js';
import { disconnecting } from '../../plugins/testing/suite/connections/disconnecting.js';
import { losing } from '../../plugins/testing/suite/connections/losing.js';
import { sharingReceives } from '../../plugins/testing/suite/transfers/sharing-receives.js';

describe('The mock under the guard of the contract', () => {
  const breaches: Breach[] = [];
  const wrap = (provider: Parameters<typeof strict>[0]): typeof provider =>
    strict(provider, (breach) => void breaches.push(breach));
  const groups = [answering, sharingReceives, disconnecting, losing, breaking, closing];
  describeGroups('behaves as without it', mockFixture({ wrap }), groups);

  it('has made no breach', () => {
    assert.deepEqual(
      breaches.map(({ message }) => message),
      [],
    );
  });
});
