import { openIa } from 'dapl';
import { Fabric, mock, type PacketAction } from 'dapl/providers/mock';
import { type PacketFault, describeProvider } from 'dapl/testing';

const ACTIVE = '192.0.2.1';
const PASSIVE = '192.0.2.2';

function actionOf(action: PacketFault['action']): PacketAction {
  if (action === 'drop') return { type: 'drop' };
  if (action === 'spoil') return { type: 'corrupt', byteOffset: 12 };
  if ('delayUs' in action) return { type: 'delay', byUs: action.delayUs };
  return { type: 'duplicate', afterUs: action.repeatAfterUs };
}

describeProvider('mock', {
  capabilities: [
    'unreachable',
    'cut',
    'scripted-faults',
    'latency',
    'refusal-reasons',
    'second-adapter',
    'loopback',
    'shared-receive-queue',
    'atomic',
    'send-with-invalidate',
    'xrc',
    'xrc-connections',
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
      addFault: ({ from, match, action, nth = 1, count = 1 }) =>
        fabric.faults.add({
          match: {
            from: from === 'active' ? ACTIVE : PASSIVE,
            where: (packet) => match(packet.bytes),
            nth,
            count,
          },
          action: actionOf(action),
        }),
      settle: () => fabric.run({ forUs: 100_000 }),
      close: async () => {
        await Promise.all([active.close(), passive.close()]);
      },
    };
  },
});
