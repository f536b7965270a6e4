// The suite of devices over our own.
import { Fabric, mock } from 'dapl/providers/mock';
import { softroce } from 'dapl/providers/softroce';
import { verbs } from 'dapl/providers/verbs';
import { describeDevice, type DeviceNeed } from 'dapl/testing';
import { CM_LIBRARY, loadCmFake } from '../fake-verbs/cm-host.js';
import { FAKE_LIBIBVERBS, fakeVerbs, Mode } from '../fake-verbs/control.js';
import { loopback } from '../support/loopback.js';

const SOFTWARE: readonly DeviceNeed[] = [
  'uc',
  'ud',
  'atomic',
  'send-with-invalidate',
  'shared-receive-queue',
  'memory-window',
  'multicast',
  'loopback',
  'rdma-read',
  'solicited',
];

describeDevice('the mock', {
  capabilities: SOFTWARE,
  async openPair() {
    const fabric = new Fabric({ seed: 1, autoRun: true });
    return {
      active: mock({ fabric, address: '192.0.2.1' }),
      passive: mock({ fabric, address: '192.0.2.2' }),
      settle: () => fabric.run({ forUs: 2000 }),
    };
  },
});

describeDevice('softroce', {
  capabilities: SOFTWARE,
  async openPair() {
    return {
      active: softroce({ addresses: [loopback(2, 81)] }),
      passive: softroce({ addresses: [loopback(2, 82)] }),
    };
  },
});

describeDevice('verbs without hardware', {
  capabilities: [
    'uc',
    'ud',
    'atomic',
    'send-with-invalidate',
    'shared-receive-queue',
    'memory-window',
    'multicast',
    'loopback',
    'rdma-read',
  ],
  async openPair() {
    const [fake, cm] = [fakeVerbs(), loadCmFake()];
    fake.restore();
    fake.setMode(Mode.THREAD);
    cm.addAddress('198.51.100.1', 'fake0');
    cm.addAddress('198.51.100.2', 'fake1');
    const libraries = { verbs: FAKE_LIBIBVERBS, rdmacm: CM_LIBRARY };
    return {
      active: verbs({ device: 'fake0', libraries }),
      passive: verbs({ device: 'fake1', libraries }),
    };
  },
});
