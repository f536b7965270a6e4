// The plays of the guest cases against ourselves: what fails here is no matter of the kernel's.
import { type Ends, openEnds } from './manual-pair.js';
import { openMockEnds } from './mock-ends.js';
import { playNotReady } from './not-ready.js';
import { playUc, playUd } from './unreliable.js';
import { playViolations } from './violations.js';

const MTU_BYTES = 1024;
const PLAYS: Readonly<Record<string, (ends: Ends) => Promise<unknown>>> = {
  violations: (ends) => playViolations(ends, MTU_BYTES),
  'late receives': (ends) => playNotReady(ends, MTU_BYTES),
  UC: (ends) => playUc(ends, MTU_BYTES),
  UD: (ends) => playUd(ends, MTU_BYTES),
};

describe('guest plays between two devices of ours', () => {
  for (const [name, play] of Object.entries(PLAYS)) {
    it(name, async () => {
      const mock = openMockEnds(1);
      try {
        await play(await openEnds(mock.requester, mock.responder));
      } finally {
        await mock.close();
      }
    }).timeout(30_000);
  }
});
