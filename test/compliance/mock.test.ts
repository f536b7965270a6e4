import { describeProvider } from 'dapl/testing';
import { describeGroups } from './groups-alone.js';
import { losing } from '../../plugins/testing/suite/connections/losing.js';
import { datagrams } from '../../plugins/testing/suite/transfers/datagrams.js';
import { modifying } from '../../plugins/testing/suite/objects/modifying.js';
import { transferring } from '../../plugins/testing/suite/transfers/transferring.js';
import { mockFixture } from './mock-fixture.js';

describeProvider('mock', mockFixture());

describeProvider(
  'mock with the limits of a small device',
  mockFixture({
    mtuBytes: 256,
    parameters: {
      maxSge: 8,
      maxInlineBytes: 0,
      maxResponderResources: 1,
      maxInitiatorDepth: 1,
      // As many as the MAD module's own queue pair has.
      maxQueuePairWr: 512,
      maxQueuePairs: 256,
      windowPackets: 16,
      burstPackets: 4,
    },
  }),
);

describeProvider(
  'mock without RDMA reads',
  mockFixture({
    without: ['rdma-read', 'atomic'],
    parameters: { maxResponderResources: 0, maxInitiatorDepth: 0 },
  }),
);

for (const maxSge of [1, 2]) {
  describeGroups(`mock with lists of ${maxSge}`, mockFixture({ parameters: { maxSge } }), [
    transferring,
    modifying,
    datagrams,
  ]);
}

// Answers take their time, and no two the same: requesters ask again before one is lost.
describeGroups(
  'mock over a slow, uneven network',
  mockFixture({ link: { latencyMinUs: 1000, latencyMeanUs: 5000 } }),
  [losing],
);
