import { openIa } from 'dapl';
import { verbs } from 'dapl/providers/verbs';
import { type Capability, describeProvider } from 'dapl/testing';
import { FAKE_LIBIBVERBS, fakeVerbs, Mode } from '../fake-verbs/control.js';
import { CM_LIBRARY, loadCmFake } from '../fake-verbs/cm-host.js';

const ACTIVE = '198.51.100.1';
const PASSIVE = '198.51.100.2';

const CAPABILITIES: readonly Capability[] = [
  'cut',
  'second-adapter',
  'loopback',
  'shared-receive-queue',
  'atomic',
  'send-with-invalidate',
  'xrc',
  'memory-window',
  'file-mapping',
  'ud',
];

const MODES = { 'at once': Mode.IMMEDIATE, 'by a thread': Mode.THREAD } as const;

for (const [how, mode] of Object.entries(MODES)) {
  describeProvider(`verbs over a libibverbs without hardware that works ${how}`, {
    capabilities: CAPABILITIES,
    async openPair() {
      const [fake, cm] = [fakeVerbs(), loadCmFake()];
      fake.restore();
      fake.setMode(mode);
      cm.addAddress(ACTIVE, 'fake0');
      cm.addAddress(PASSIVE, 'fake1');
      const libraries = { verbs: FAKE_LIBIBVERBS, rdmacm: CM_LIBRARY };
      const active = await openIa(verbs({ device: 'fake0', libraries }));
      const passive = await openIa(verbs({ device: 'fake1', libraries }));
      return {
        active,
        passive,
        passiveAddress: PASSIVE,
        openPassiveAgain: (options) => openIa(verbs({ device: 'fake1', libraries }), options),
        cut: () => {
          fake.setLink('fake0', 1, 0);
          fake.setLink('fake1', 1, 0);
        },
        close: async () => {
          await Promise.all([active.close(), passive.close()]);
        },
      };
    },
  });
}
