/**
 * The conformance suite over the verbs provider and the kernel's rxe; run by mocha in a guest. Both
 * adapters are of rxe0, each with a context of its own.
 */
import { openIa } from 'dapl';
import { verbs } from 'dapl/providers/verbs';
import { describeProvider } from 'dapl/testing';

const address = process.env['GUEST_IPV4'] ?? '';

describeProvider('verbs over the rxe of the kernel', {
  capabilities: [
    'loopback',
    'shared-receive-queue',
    'atomic',
    'send-with-invalidate',
    'memory-window',
    'file-mapping',
    'ud',
  ],
  async openPair() {
    const active = await openIa(verbs({ device: 'rxe0' }));
    const passive = await openIa(verbs({ address }));
    return {
      active,
      passive,
      passiveAddress: address,
      openPassiveAgain: (options) => openIa(verbs({ address }), options),
      close: async () => {
        await Promise.all([active.close(), passive.close()]);
      },
    };
  },
});
