/** What a link without a reorder fault promises, and what the HCA makes of it. */
import assert from 'node:assert/strict';
import { DatEventNumber, openIa } from 'dapl';
import { Fabric, mock } from 'dapl/providers/mock';
import { viewOf } from '../../../providers/mock/wire-packet.js';
import { connected } from '../../../plugins/testing/suite/peer.js';

const ACTIVE = '192.0.2.1';
const PASSIVE = '192.0.2.2';

describe('order on a link of the fabric', () => {
  it('is that of sending, however much the latency varies, whatever chance loses', async () => {
    for (let seed = 1; seed <= 20; seed++) {
      const link = { latencyMinUs: 1, latencyMeanUs: 200, lossPercent: 10 };
      const fabric = new Fabric({ seed, autoRun: true, link });
      const sent = new Map<unknown, number>();
      const last = new Map<string, number>();
      let count = 0;
      fabric.tap = (event, packet) => {
        if (event === 'sent') {
          sent.set(packet, ++count);
          return;
        }
        const { from, to } = packet.flow;
        const number = sent.get(packet) ?? 0;
        assert.ok(number > (last.get(from + to) ?? 0), `packet ${number} was overtaken`);
        last.set(from + to, number);
      };
      await transfer(fabric);
      assert.ok(last.size === 2 && count > 100);
    }
  });

  it('lets the refusal of a request arrive before the disconnect that it leads to', async () => {
    for (let seed = 1; seed <= 30; seed++) {
      const fabric = new Fabric({ seed, autoRun: true });
      const left: string[] = [];
      fabric.tap = (event, packet) => {
        const { from, opcodeName, mad } = viewOf(packet);
        if (event !== 'sent' || from !== PASSIVE) return;
        if (opcodeName === 'RC_ACKNOWLEDGE') left.push('NAK');
        if (mad?.attributeId === 0x15) left.push('DREQ');
      };
      const { active, passive, close } = await openPair(fabric);
      const peers = await connected({ active, passive, passiveAddress: PASSIVE, close });
      const wrong = { address: 0n, rmrContext: 1 };
      peers.active.ep.postRdmaWrite(peers.active.lmr.segment(0, 8), 1, wrong);
      await peers.active.expect('dto 1 REMOTE_ACCESS', 'BROKEN');
      assert.equal((await peers.passive.next()).number, DatEventNumber.BROKEN);
      await close();
      assert.deepEqual(left.slice(0, 2), ['NAK', 'DREQ'], `seed ${seed}`);
    }
  });
});

async function openPair(fabric: Fabric): Promise<{
  active: Awaited<ReturnType<typeof openIa>>;
  passive: Awaited<ReturnType<typeof openIa>>;
  close: () => Promise<void>;
}> {
  const active = await openIa(mock({ fabric, address: ACTIVE }));
  const passive = await openIa(mock({ fabric, address: PASSIVE }));
  const close = async (): Promise<void> => {
    await Promise.all([active.close('abrupt'), passive.close('abrupt')]);
  };
  return { active, passive, close };
}

/** Writes of both sides at once, in packets of all lengths. */
async function transfer(fabric: Fabric): Promise<void> {
  const { active, passive, close } = await openPair(fabric);
  const peers = await connected({ active, passive, passiveAddress: PASSIVE, close });
  for (let i = 0; i < 20; i++) {
    const segment = (side: typeof peers.active): ReturnType<typeof side.lmr.segment> =>
      side.lmr.segment(0, 1 + i * 300);
    peers.active.ep.postRdmaWrite(segment(peers.active), i, peers.passive.remote());
    peers.passive.ep.postRdmaRead(segment(peers.passive), i, peers.active.remote());
  }
  await peers.active.until('dto 19 SUCCESS');
  await peers.passive.until('dto 19 SUCCESS');
  await close();
}
