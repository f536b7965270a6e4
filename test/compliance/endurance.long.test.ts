import assert from 'node:assert/strict';
import { setTimeout } from 'node:timers/promises';
import { type Ia, openIa } from 'dapl';
import { softroce } from 'dapl/providers/softroce';
import { Fabric, mock } from 'dapl/providers/mock';
import { heldBytes } from '../support/heap.js';
import type { CompliancePair } from '../../plugins/testing/suite/fixture.js';
import { connect, Peer } from '../../plugins/testing/suite/peer.js';
import { loopback } from '../support/loopback.js';

const [FIRST, SECOND] = [loopback(2, 31), loopback(2, 32)] as const;

interface Provider {
  /** Connections made one after another: fewer where the port adds nothing of its own to them. */
  readonly connections: number;
  open(address: string): Promise<Ia>;
}

const PROVIDERS: Readonly<Record<string, () => Provider>> = {
  mock: () => {
    const fabric = new Fabric({ seed: 1, autoRun: true });
    return { connections: 100, open: (address) => openIa(mock({ fabric, address })) };
  },
  'softroce over the native port': () => ({
    connections: 500,
    open: (address) => openIa(softroce({ addresses: [address], port: 'native', shm: false })),
  }),
  'softroce over the dgram port': () => ({
    connections: 100,
    open: (address) => openIa(softroce({ addresses: [address], port: 'dgram' })),
  }),
};

/** Connections hold their queue pairs until timewait is over; here that takes about a second. */
const TIMEWAIT_MS = 2000;
const TIMEWAIT_AT_MOST_MS = 12_000;

/**
 * Repeats `cycle`, and compares what is held after each half, timewait being over: whatever a cycle
 * keeps for good shows `cycles / 2` times.
 */
async function assertFlat(
  cycles: number,
  limit: number,
  cycle: () => Promise<void>,
): Promise<void> {
  const half = async (): Promise<void> => {
    for (let i = 0; i < cycles / 2; i++) await cycle();
    await setTimeout(TIMEWAIT_MS);
  };
  await half();
  const first = await heldBytes();
  await half();
  let grown = (await heldBytes()) - first;
  for (let ms = TIMEWAIT_MS; grown >= limit && ms < TIMEWAIT_AT_MOST_MS; ms += 500) {
    await setTimeout(500);
    grown = (await heldBytes()) - first;
  }
  assert.ok(grown < limit, `${grown} bytes more are held after ${cycles / 2} cycles`);
}

async function connectTransferDisconnect(pair: CompliancePair): Promise<void> {
  const options = { lengthBytes: 4096, qlen: 64 };
  const active = new Peer(pair.active, options);
  const passive = new Peer(pair.passive, options);
  passive.ep.postRecv(passive.lmr.segment(), 1);
  await connect({ pair, active, passive });
  active.ep.postSend(active.lmr.segment(0, 2000), 2);
  await passive.expect('dto 1 SUCCESS');
  await active.expect('dto 2 SUCCESS');
  active.ep.disconnect('graceful');
  await active.expect('DISCONNECTED');
  await passive.expect('DISCONNECTED');
  for (const { ep, lmr, evd, pz } of [active, passive]) {
    ep.free();
    lmr.free();
    await evd.free();
    pz.free();
  }
}

for (const [name, make] of Object.entries(PROVIDERS)) {
  describe(`Endurance, ${name}`, () => {
    it('opens and closes a device 200 times at one address, with flat memory', async () => {
      const provider = make();
      await assertFlat(200, 2 << 20, async () => {
        const ia = await provider.open(FIRST);
        new Peer(ia, { lengthBytes: 4096, qlen: 64 });
        await ia.close();
      });
    });

    it('connects, transfers and disconnects again and again, with flat memory', async () => {
      const provider = make();
      const pair = {
        active: await provider.open(FIRST),
        passive: await provider.open(SECOND),
        passiveAddress: SECOND,
        close: async () => undefined,
      };
      await assertFlat(provider.connections, 4 << 20, () => connectTransferDisconnect(pair));
      await Promise.all([pair.active.close(), pair.passive.close()]);
    });

    it('holds nothing of what was made and freed', async () => {
      const ia = await make().open(FIRST);
      await assertFlat(200, 1 << 20, async () => {
        const { ep, lmr, evd, pz } = new Peer(ia);
        const psp = ia.createPsp({ connQual: 7 });
        for (const handle of [psp, ep, lmr, pz]) handle.free();
        await evd.free();
      });
      await ia.close();
    });
  });
}
