/** Freed objects are released while the adapters stay open: nothing accumulates. */
import assert from 'node:assert/strict';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { MemPrivileges } from 'dapl';
import { type Claim, group } from '../behaviour.js';
import type { CompliancePair } from '../fixture.js';
import { PATIENCE_MS } from '../pace.js';
import { CONN_QUAL, connected, join, meet, type Peers, settle } from '../peer.js';
import { assertHolds } from '../usage.js';

const { ALL } = MemPrivileges;
/** Cycles after which everything that is cached at first use has been allocated. */
const WARM_UP = 2;
const CYCLES = 3;
const REGIONS = 8;
const REGION_BYTES = 1 << 16;
const LOOKS = 10;

/** Asserts that the provider holds no more after many cycles than after the first ones. */
async function givesBack(pair: CompliancePair, cycle: () => Promise<void>): Promise<void> {
  for (let i = 0; i < WARM_UP; i++) await cycle();
  const before = pair.usage?.() ?? {};
  for (let i = 0; i < CYCLES; i++) await cycle();
  await assertHolds(pair, before, `after ${CYCLES} times more of the same`);
}

export const givingBack = group('Giving back', (plain) => {
  const claim: Claim = (name, run, needs = []) => plain(name, run, ['usage', ...needs]);

  plain('memory of regions that are freed is let go: it can be collected', async (pair) => {
    const collect = garbageCollector();
    const peers = await connected(pair);
    const memories = await registerAndFree(peers);
    const left = (): number => memories.filter((memory) => memory.deref() !== undefined).length;
    // A callback that refers to one may still run, or a finalizer may be pending.
    for (let look = 0; look < LOOKS && left() > 0; look++) {
      await settle(pair);
      collect();
    }
    assert.equal(left(), 0, `of ${REGIONS} memories ${left()} are still held`);
  });

  claim('regions that are freed', async (pair) => {
    const peers = await connected(pair);
    await givesBack(pair, async () => {
      await registerAndFree(peers);
    });
  });

  claim(
    'connections that have ended: their queue pairs, and the paths to the peer',
    async (pair) => {
      const peers = meet(pair);
      const { active, passive } = peers;
      await givesBack(pair, async () => {
        const [from, to] = [active.endpoint(), passive.endpoint()];
        await join(peers, from, to);
        from.disconnect();
        await active.expect('DISCONNECTED');
        await passive.expect('DISCONNECTED');
        from.free();
        to.free();
      });
    },
  );

  claim('connections that are refused', async (pair) => {
    const { active } = meet(pair);
    await givesBack(pair, async () => {
      const ep = active.endpoint();
      ep.connect({ address: pair.passiveAddress, connQual: CONN_QUAL });
      await active.expect('NON_PEER_REJECTED');
      ep.free();
    });
  });

  claim(
    'address handles that are freed, and datagram endpoints',
    async (pair) => {
      const { ia, pz, evd } = meet(pair).active;
      await givesBack(pair, async () => {
        const ep = ia.createUdEndpoint({ pz, recvEvd: evd, requestEvd: evd });
        const to = { address: pair.passiveAddress, qpn: 2, qkey: 1 };
        for (let i = 0; i < 4; i++) ep.createAddressHandle(to).free();
        ep.free();
        await Promise.resolve();
      });
    },
    ['ud'],
  );

  claim(
    'windows that are freed, and their regions',
    async (pair) => {
      const { passive } = await connected(pair);
      const { ia, pz, ep, evd } = passive;
      await givesBack(pair, async () => {
        const lmr = ia.allocate(64, { pz });
        const rmr = ia.createRmr(pz);
        rmr.bind(lmr.segment(), ep);
        await evd.wait({ timeoutMs: PATIENCE_MS });
        rmr.free();
        lmr.free();
      });
    },
    ['memory-window'],
  );
});

/** Registers memory without other references, lets the peer write it, and frees it. */
async function registerAndFree(peers: Peers): Promise<WeakRef<ArrayBuffer>[]> {
  const memories: WeakRef<ArrayBuffer>[] = [];
  for (let i = 1; i <= REGIONS; i++) memories.push(await writeOnce(peers, i));
  // A device may cache the last region that it has written.
  const { active, passive } = peers;
  active.ep.postRdmaWrite(active.lmr.segment(0, 64), REGIONS + 1, passive.remote());
  await active.expect(`dto ${REGIONS + 1} SUCCESS`);
  return memories;
}

async function writeOnce(
  { active, passive }: Peers,
  cookie: number,
): Promise<WeakRef<ArrayBuffer>> {
  const memory = new ArrayBuffer(REGION_BYTES);
  const lmr = passive.ia.createLmr(memory, { pz: passive.pz, privileges: ALL });
  active.ep.postRdmaWrite(active.lmr.segment(0, 64), cookie, passive.remote(0, lmr));
  await active.expect(`dto ${cookie} SUCCESS`);
  lmr.free();
  return new WeakRef(memory);
}

function garbageCollector(): () => void {
  setFlagsFromString('--expose-gc');
  const collect: unknown = runInNewContext('gc');
  assert.ok(typeof collect === 'function', 'Node can collect garbage on demand');
  return collect as () => void;
}
