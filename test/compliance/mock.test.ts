import { openIa } from 'dapl';
import { Fabric, mock } from 'dapl/providers/mock';
import { describeProvider } from 'dapl/testing';

const ACTIVE = '192.0.2.1';
const PASSIVE = '192.0.2.2';

describeProvider('mock', {
  capabilities: [
    'unreachable',
    'cut',
    'second-adapter',
    'loopback',
    'shared-receive-queue',
    'atomic',
    'send-with-invalidate',
    'xrc',
    'memory-window',
    'ud',
  ],
  async openPair() {
    const fabric = new Fabric({ seed: 1, autoRun: true });
    const active = await openIa(mock({ fabric, address: ACTIVE }));
    const passive = await openIa(mock({ fabric, address: PASSIVE }));
    return {
      active,
      passive,
      passiveAddress: PASSIVE,
      unreachableAddress: '192.0.2.99',
      openPassiveAgain: (options) => openIa(mock({ fabric, address: PASSIVE }), options),
      cut: () => fabric.partition([ACTIVE], [PASSIVE]),
      settle: () => fabric.run({ forUs: 100_000 }),
      close: async () => {
        await Promise.all([active.close(), passive.close()]);
      },
    };
  },
});
