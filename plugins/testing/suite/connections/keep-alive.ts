/** keepAliveMs: an idle connection breaks if the peer is gone, and stays up if it is alive. */
import assert from 'node:assert/strict';
import { type Claim, group } from '../behaviour.js';
import { pass } from '../pace.js';
import { connected, expectQuiet, type Peers, settle } from '../peer.js';

const KEEP_ALIVE_MS = 20;
const transport = { ackTimeout: 8, retryCount: 2 };
const attributes = { keepAliveMs: KEEP_ALIVE_MS, transport, maxRequestDtos: 4 };

export const keepAlive = group('Keep-alive', (claim) => {
  unseen(claim);

  claim(
    'an idle connection breaks on both sides when the peer is gone',
    async (pair) => {
      const { active, passive } = await connected(pair, { attributes });
      pair.cut?.();
      await active.expect('BROKEN');
      await passive.expect('BROKEN');
      assert.equal(active.ep.state, 'DISCONNECTED');
    },
    ['cut'],
  );

  claim(
    'without it an idle connection stays, whoever is gone',
    async (pair) => {
      const peers = await connected(pair, { attributes: { transport } });
      pair.cut?.();
      await pass(pair, 5 * KEEP_ALIVE_MS);
      await expectQuiet(peers);
      assert.equal(peers.active.ep.state, 'CONNECTED');
    },
    ['cut'],
  );
});

function unseen(claim: Claim): void {
  claim('an idle connection with a peer that is there stays, and shows nothing', async (pair) => {
    const peers = await connected(pair, { attributes });
    const { active } = peers;
    const before = active.ep.counters();
    await pass(pair, 10 * KEEP_ALIVE_MS);
    await expectQuiet(peers);
    assert.equal(active.ep.state, 'CONNECTED');
    assert.deepEqual(active.ep.counters(), before);
    await exchange(peers);
  });
}

/** Posts as many requests as allowed, and waits for them. */
async function exchange({ pair, active, passive }: Peers): Promise<void> {
  for (let cookie = 1; cookie <= attributes.maxRequestDtos; cookie++) {
    passive.ep.postRecv([], cookie);
    active.ep.postSend([], cookie);
  }
  const lines = ['dto 1 SUCCESS', 'dto 2 SUCCESS', 'dto 3 SUCCESS', 'dto 4 SUCCESS'];
  await active.expect(...lines);
  await passive.expect(...lines);
  await settle(pair);
}
