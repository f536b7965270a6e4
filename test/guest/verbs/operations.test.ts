// The plays of the guest cases against ourselves: what fails here is no matter of the kernel's.
import { openIa } from 'dapl';
import { Fabric, mock } from 'dapl/providers/mock';

import { DatEnd } from './dat-end.js';
import { connectEnds, playOperations, wishesFor } from './operations.js';

describe('guest plays: operations', () => {
  it('stand between two adapters of ours', async () => {
    const fabric = new Fabric({ autoRun: true, mtuBytes: 4096 });
    const open = async (address: string): Promise<DatEnd> =>
      new DatEnd(await openIa(mock({ fabric, address })));
    const requester = await open('10.0.0.1');
    const responder = await open('10.0.0.2');
    try {
      const domains = { requester: await requester.domain(), responder: await responder.domain() };
      const to = { address: '10.0.0.2', port: 7600 };
      const wishes = wishesFor(1024);
      const [pair, theirs] = await connectEnds(requester, responder, to, wishes, domains);
      await playOperations({
        requester: { end: requester, pair },
        responder: { end: responder, pair: theirs },
        domains,
        mtuBytes: 1024,
        fences: true,
      });
    } finally {
      await requester.close();
      await responder.close();
    }
  }).timeout(30_000);
});
