import assert from 'node:assert/strict';
import type { SdpOptions } from '../../../../../samples/ulp/sdp/index.js';
import { liveOnMock } from './mock-life.js';

const WAYS: Readonly<Record<string, SdpOptions>> = {
  BUFFERED: { zeroCopy: 'BUFFERED' },
  COMBINED: { zeroCopy: 'COMBINED' },
  PIPELINED: { zeroCopy: 'PIPELINED' },
  'PIPELINED with SinkAvail': { zeroCopy: 'PIPELINED', offersSink: true },
};

describe('sdp on the simulated fabric', () => {
  for (const [name, sdp] of Object.entries(WAYS)) {
    for (const lossPercent of [0, 3]) {
      it(`${name}, ${lossPercent} percent of packets lost: every byte once, in order`, async () => {
        for (let seed = 1; seed <= 2; seed++) {
          const { faults } = await liveOnMock({ seed, sdp, lossPercent });
          assert.deepEqual(faults, [], `seed ${seed}`);
        }
      });
    }
  }
});
