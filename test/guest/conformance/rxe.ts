/**
 * The conformance suite over the verbs provider and the kernel's rxe; run by mocha in a guest:
 * within one device, or between two that the environment names.
 */
import { openIa } from 'dapl';
import { verbs } from 'dapl/providers/verbs';
import { describeProvider } from 'dapl/testing';

import { RXE_DEVIATIONS } from './rxe-deviations.js';

const { RXE_ACTIVE = 'rxe0', RXE_PASSIVE = '' } = process.env;

describeProvider('verbs over the rxe of the kernel', {
  capabilities: [
    'second-adapter',
    'loopback',
    'rdma-read',
    'shared-receive-queue',
    'atomic',
    'send-with-invalidate',
    'memory-window',
    'file-mapping',
    'ud',
    'multicast',
  ],
  deviations: RXE_DEVIATIONS,
  async openPair() {
    const active = await openIa(verbs({ device: RXE_ACTIVE }));
    const passive = await openIa(verbs({ address: RXE_PASSIVE }));
    return {
      active,
      passive,
      passiveAddress: RXE_PASSIVE,
      openPassiveAgain: (options) => openIa(verbs({ address: RXE_PASSIVE }), options),
      close: async () => {
        await Promise.all([active.close(), passive.close()]);
      },
    };
  },
});
