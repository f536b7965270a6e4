// A device without a word about its queue pairs, neither of errors nor of the last receive, as
// rdma_rxe of Linux 6.1 is: what DAT promises of shared receive queues, and of peers that reach
// where they may not, holds over it all the same.
import assert from 'node:assert/strict';
import { openIa } from 'dapl';
import { verbs } from 'dapl/providers/verbs';
import { TimerWheel } from '../../../core/spi/index.js';
import { LastReceive } from '../../../providers/verbs/objects/last-receive.js';
import { describeGroups } from '../../compliance/groups-alone.js';
import { protecting } from '../../../plugins/testing/suite/objects/protecting.js';
import { sharingReceives } from '../../../plugins/testing/suite/transfers/sharing-receives.js';
import { CM_LIBRARY, loadCmFake } from '../../fake-verbs/cm-host.js';
import { FAKE_LIBIBVERBS, fakeVerbs, Feature, Mode } from '../../fake-verbs/control.js';

const PASSIVE = '198.51.100.2';

describeGroups(
  'verbs over a device that says nothing of its queue pairs',
  {
    capabilities: ['shared-receive-queue', 'rdma-read'],
    async openPair() {
      const [fake, cm] = [fakeVerbs(), loadCmFake()];
      fake.restore();
      fake.setMode(Mode.THREAD);
      cm.addAddress('198.51.100.1', 'fake0');
      cm.addAddress(PASSIVE, 'fake1');
      for (const name of ['fake0', 'fake1']) {
        fake.setFeatures(name, Feature.ALL & ~Feature.QP_EVENTS);
      }
      const libraries = { verbs: FAKE_LIBIBVERBS, rdmacm: CM_LIBRARY };
      const active = await openIa(verbs({ device: 'fake0', libraries }));
      const passive = await openIa(verbs({ device: 'fake1', libraries }));
      const close = async (): Promise<void> => {
        await Promise.all([active.close(), passive.close()]);
        fake.restore();
      };
      return { active, passive, passiveAddress: PASSIVE, close };
    },
  },
  [sharingReceives, protecting],
);

describe('LastReceive', () => {
  const GRACE_US = 50_000;
  let nowUs = 0;
  let wheel: TimerWheel;
  let told: number;
  let last: LastReceive;

  beforeEach(() => {
    nowUs = 1_000_000;
    wheel = new TimerWheel(nowUs);
    told = 0;
    last = new LastReceive({ clock: { now: () => nowUs }, timers: wheel }, () => told++);
  });

  function pass(us: number): void {
    nowUs += us;
    wheel.advance(nowUs);
  }

  it('is told once when the device says nothing, and not before its time', () => {
    last.expect();
    pass(GRACE_US / 2);
    last.expect();
    assert.equal(told, 0);
    pass(GRACE_US);
    assert.equal(told, 1);
    assert.equal(last.arrived(), false, 'the device is late');
    last.expect();
    pass(2 * GRACE_US);
    assert.equal(told, 1);
  });

  it('is the word of the device where that comes, and no timer stays', () => {
    last.expect();
    assert.equal(last.arrived(), true);
    assert.equal(wheel.size, 0);
    pass(2 * GRACE_US);
    assert.equal(told, 0);
  });

  it('is expected again in the next life', () => {
    last.expect();
    pass(2 * GRACE_US);
    last.reset();
    last.expect();
    pass(2 * GRACE_US);
    assert.equal(told, 2);
  });
});
