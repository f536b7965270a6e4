/** A device that goes while receives of a shared queue are posted, over the real HCA. */
import assert from 'node:assert/strict';
import { type DatEvent, openIa } from '../../../core/index.js';
import { Fabric, mock } from '../../../providers/mock/index.js';
import { type Peers, join, meet, refuses, textOf } from '../../../plugins/testing/suite/peer.js';

const ACTIVE = '10.0.0.1';
const PASSIVE = '10.0.0.2';

/** Two endpoints of the passive side on one queue. */
async function scene(seed: number) {
  const fabric = new Fabric({ seed, autoRun: true });
  const active = await openIa(mock({ fabric, address: ACTIVE }));
  const passive = await openIa(mock({ fabric, address: PASSIVE }));
  const close = async (): Promise<void> => {
    await Promise.all([active.close(), passive.close()]);
  };
  const attributes = { transport: { ackTimeout: 8, retryCount: 2 } };
  const peers: Peers = meet(
    { active, passive, passiveAddress: PASSIVE, close },
    { active: { attributes } },
  );
  const srq = passive.createSrq({ pz: peers.passive.pz, maxRecvDtos: 16 });
  const senders = [peers.active.endpoint(), peers.active.endpoint()];
  const receivers = [0, 1].map(() => peers.passive.endpoint(peers.passive.evd, { srq }));
  for (const [i, sender] of senders.entries()) {
    const receiver = receivers[i];
    assert.ok(receiver);
    await join(peers, sender, receiver);
  }
  for (let cookie = 1; cookie <= 6; cookie++) {
    srq.postRecv(peers.passive.lmr.segment(cookie * 64, 64), cookie);
  }
  return { fabric, peers, srq, senders, receivers, close };
}

describe('a device that is removed with receives of an SRQ outstanding', () => {
  it('breaks each connection once, leaves no memory held, and closes', async () => {
    for (let seed = 1; seed <= 10; seed++) {
      const { fabric, peers, srq, senders, receivers, close } = await scene(seed);
      const { active, passive } = peers;
      senders[0]?.postSend(active.lmr.segment(0, 8), 50);
      await passive.expect('dto 1 SUCCESS');
      await active.expect('dto 50 SUCCESS');
      // In the middle of a message, which has taken a receive.
      senders[1]?.postSend(active.lmr.segment(0, 8), 51);
      fabric.node(PASSIVE)?.remove();
      await fabric.run({ forUs: 1_000_000 });
      const told = passive.drain().filter((text) => !text.startsWith('dto'));
      assert.deepEqual(told, ['BROKEN', 'BROKEN'], `seed ${seed}`);
      assert.deepEqual(
        receivers.map((ep) => ep.state),
        ['DISCONNECTED', 'DISCONNECTED'],
      );
      assert.deepEqual(
        active.drain().filter((text) => text.startsWith('dto')),
        ['dto 51 TRANSPORT'],
      );
      assert.equal(srq.query().outstandingDtos, 5);
      refuses(() => passive.lmr.free(), 'DAT_INVALID_STATE_LMR_IN_USE');
      for (const ep of receivers) ep.free();
      srq.free();
      passive.lmr.free();
      await close();
      await fabric.run({ untilIdle: true });
      assert.equal(fabric.pool.inUse, 0);
    }
  });

  it('says so on the asynchronous dispatcher, once, and refuses further receives', async () => {
    const { fabric, peers, srq, close } = await scene(1);
    const { ia } = peers.passive;
    fabric.node(PASSIVE)?.remove();
    await fabric.run({ forUs: 100 });
    const events: DatEvent[] = [];
    for (let one = ia.asyncEvd.dequeue(); one; one = ia.asyncEvd.dequeue()) events.push(one);
    const fatal = events.filter((event) => event.type === 'async-error' && event.object === ia);
    assert.deepEqual(fatal.map(textOf), ['ASYNC_IA_CATASTROPHIC']);
    await close();
    refuses(() => srq.postRecv([]), 'DAT_INVALID_HANDLE');
  });
});
