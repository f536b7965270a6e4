import assert from 'node:assert/strict';
import { openIa } from 'dapl';
import { verbs } from 'dapl/providers/verbs';
import { type Capability, describeProvider } from 'dapl/testing';
import { CM_LIBRARY, loadCmFake } from '../fake-verbs/cm-host.js';
import { FAKE_LIBIBVERBS, fakeVerbs, Mode } from '../fake-verbs/control.js';

const ACTIVE = '198.51.100.1';
const PASSIVE = '198.51.100.2';

const CAPABILITIES: readonly Capability[] = [
  'cut',
  'second-adapter',
  'loopback',
  'rdma-read',
  'shared-receive-queue',
  'atomic',
  'send-with-invalidate',
  'xrc',
  'memory-window',
  'file-mapping',
  'named-memory',
  'ud',
  'multicast',
  'usage',
];

/** Hardware that works once in every turn of the event loop; returns what stops it. */
function workByTurns(): () => void {
  const fake = fakeVerbs();
  let before = performance.now();
  let next: NodeJS.Immediate;
  const turn = (): void => {
    const now = performance.now();
    fake.elapse(Math.round((now - before) * 1000));
    before = now;
    fake.progress(0);
    next = setImmediate(turn);
  };
  next = setImmediate(turn);
  return () => {
    clearImmediate(next);
  };
}

const KINDS_HELD = ['mr', 'qp', 'ah', 'mw', 'cq', 'srq', 'pd'] as const;

/** Objects of libibverbs and identifiers of librdmacm, but for those that were there before. */
function held(before: Readonly<Record<string, number>> = {}): Record<string, number> {
  const counts = KINDS_HELD.map((kind) => [kind, fakeVerbs().objects(kind)] as const);
  return Object.fromEntries(
    [...counts, ['rdma_cm_id', loadCmFake().live()] as const].map(([kind, count]) => [
      kind,
      count - (before[kind] ?? 0),
    ]),
  );
}

const KINDS = [
  { how: 'by turns', mode: Mode.MANUAL, start: workByTurns, more: ['latency'] },
  { how: 'by a thread', mode: Mode.THREAD, start: () => () => undefined, more: [] },
] as const;

/** Tests that break things on purpose may have left some in this process. */
const left = (): number[] => [fakeVerbs().objects(''), loadCmFake().live()];
let leftBefore: number[] = [];

for (const { how, mode, start, more } of KINDS) {
  describeProvider(`verbs over a libibverbs without hardware that works ${how}`, {
    capabilities: [...CAPABILITIES, ...more],
    async openPair() {
      const [fake, cm] = [fakeVerbs(), loadCmFake()];
      if (leftBefore.length === 0) leftBefore = left();
      fake.restore();
      fake.setMode(mode);
      cm.addAddress(ACTIVE, 'fake0');
      cm.addAddress(PASSIVE, 'fake1');
      const libraries = { verbs: FAKE_LIBIBVERBS, rdmacm: CM_LIBRARY };
      const before = held();
      const active = await openIa(verbs({ device: 'fake0', libraries }));
      const passive = await openIa(verbs({ device: 'fake1', libraries }));
      const stop = start();
      return {
        active,
        passive,
        passiveAddress: PASSIVE,
        xrcByNumbers: true,
        usage: () => held(before),
        openPassiveAgain: (options) => openIa(verbs({ device: 'fake1', libraries }), options),
        cut: () => {
          fake.setLink('fake0', 1, 0);
          fake.setLink('fake1', 1, 0);
        },
        close: async () => {
          await Promise.all([active.close(), passive.close()]);
          stop();
        },
      };
    },
  });
}

describe('verbs over a libibverbs without hardware', () => {
  it('leaves nothing behind: no object of libibverbs, no identifier of librdmacm', () => {
    assert.deepEqual(left(), leftBefore);
  });
});
