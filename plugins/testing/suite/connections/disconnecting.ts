/** Disconnecting: by either side or both, abrupt or graceful. Requests end before the event. */
import assert from 'node:assert/strict';
import type { CloseFlag } from 'dapl';
import { type Claim, group } from '../behaviour.js';
import { connected, expectQuiet, type Peers, refuses, settle } from '../peer.js';

type Side = 'active' | 'passive';
const SIDES: readonly Side[] = ['active', 'passive'];
const FLAGS: readonly CloseFlag[] = ['graceful', 'abrupt'];

async function bothDisconnected(peers: Peers): Promise<void> {
  await peers.active.expect('DISCONNECTED');
  await peers.passive.expect('DISCONNECTED');
  await expectQuiet(peers);
  assert.equal(peers.active.ep.state, 'DISCONNECTED');
  assert.equal(peers.passive.ep.state, 'DISCONNECTED');
}

export const disconnecting = group('Disconnecting', (claim) => {
  for (const side of SIDES) {
    for (const flag of FLAGS) {
      claim(`${flag}, from the ${side} side: one DISCONNECTED on each side`, async (pair) => {
        const peers = await connected(pair);
        peers[side].ep.disconnect(flag);
        await bothDisconnected(peers);
      });
    }
  }

  for (const flag of FLAGS) {
    claim(`${flag}, from both sides at once: one DISCONNECTED on each side`, async (pair) => {
      const peers = await connected(pair);
      peers.active.ep.disconnect(flag);
      peers.passive.ep.disconnect(flag);
      await bothDisconnected(peers);
    });
  }

  claim('graceful from one side and abrupt from the other at once', async (pair) => {
    const peers = await connected(pair);
    peers.active.ep.disconnect('graceful');
    peers.passive.ep.disconnect('abrupt');
    await bothDisconnected(peers);
  });

  for (const end of ['disconnected', 'freed'] as const) {
    claim(
      `a message that has arrived is acknowledged, though its taker is ${end} at once`,
      async (pair) => {
        const { active, passive } = await connected(pair);
        passive.ep.postRecv(passive.lmr.segment(0, 64), 1);
        active.ep.postSend(active.lmr.segment(0, 64), 2);
        await passive.expect('dto 1 SUCCESS');
        if (end === 'freed') passive.ep.free();
        else passive.ep.disconnect('abrupt');
        await active.expect('dto 2 SUCCESS', 'DISCONNECTED');
      },
    );
  }

  claim('twice: abrupt again, and in DISCONNECTED, adds no event', async (pair) => {
    const peers = await connected(pair);
    peers.active.ep.disconnect('abrupt');
    peers.active.ep.disconnect('abrupt');
    await peers.active.expect('DISCONNECTED');
    peers.active.ep.disconnect('abrupt');
    peers.active.ep.disconnect('graceful');
    await peers.passive.expect('DISCONNECTED');
    await expectQuiet(peers);
  });

  claim('abrupt after graceful hastens the end', async (pair) => {
    const peers = await connected(pair);
    peers.active.ep.disconnect('graceful');
    peers.active.ep.disconnect('abrupt');
    await bothDisconnected(peers);
  });

  outstanding(claim);
  otherEnds(claim);
});

function outstanding(claim: Claim): void {
  claim('graceful again while disconnecting has no effect', async (pair) => {
    const { active, passive } = await connected(pair);
    for (let i = 0; i < 3; i++) passive.ep.postRecv([], i);
    for (let i = 0; i < 3; i++) active.ep.postSend([], i);
    active.ep.disconnect('graceful');
    active.ep.disconnect('graceful');
    const lines = [0, 1, 2].map((i) => `dto ${i} SUCCESS`);
    await active.expect(...lines, 'DISCONNECTED');
    await passive.expect(...lines, 'DISCONNECTED');
    active.ep.disconnect('graceful');
    assert.deepEqual(active.drain(), []);
  });

  claim('graceful lets posted requests finish: all succeed, then DISCONNECTED', async (pair) => {
    const peers = await connected(pair);
    const { active, passive } = peers;
    const count = 30;
    const remote = passive.remote();
    active.lmr.bytes.fill(1, 0, count * 1000);
    const cookies = Array.from({ length: count }, (_, i) => i);
    for (const i of cookies) {
      active.ep.postRdmaWrite(active.lmr.segment(i * 1000, 1000), i, remote.seek(i * 1000));
    }
    active.ep.disconnect('graceful');
    await active.expect(...cookies.map((i) => `dto ${i} SUCCESS`), 'DISCONNECTED');
    assert.ok(passive.lmr.bytes.subarray(0, count * 1000).every((byte) => byte === 1));
    await passive.expect('DISCONNECTED');
  });

  claim('graceful, requests suppressed: the data is there before DISCONNECTED', async (pair) => {
    const { active, passive } = await connected(pair);
    active.lmr.bytes.fill(1, 0, 30_000);
    active.ep.postRdmaWrite(active.lmr.segment(0, 30_000), 1, passive.remote(), 1);
    active.ep.disconnect('graceful');
    await active.expect('DISCONNECTED');
    assert.equal(passive.lmr.bytes[29_999], 1);
  });

  claim('posted receives are flushed, in order, before DISCONNECTED', async (pair) => {
    const { active, passive } = await connected(pair);
    for (const peer of [active, passive]) {
      for (const cookie of [1, 2, 3]) peer.ep.postRecv(peer.lmr.segment(), cookie);
    }
    active.ep.disconnect();
    for (const peer of [active, passive]) {
      await peer.expect('dto 1 FLUSHED', 'dto 2 FLUSHED', 'dto 3 FLUSHED', 'DISCONNECTED');
    }
  });

  claim(
    'abrupt with requests under way: each ends once, in order, then DISCONNECTED',
    async (p) => {
      const { active, passive } = await connected(p, { lengthBytes: 1 << 20 });
      const count = 20;
      for (let i = 0; i < count; i++) {
        active.ep.postRdmaWrite(active.lmr.segment(), i, passive.remote());
      }
      active.ep.disconnect('abrupt');
      const seen = await active.until('DISCONNECTED');
      const cookies = seen.slice(0, -1).map((text) => Number(text.split(' ')[1]));
      assert.deepEqual(
        cookies,
        Array.from({ length: count }, (_, i) => i),
      );
      const statuses = seen.slice(0, -1).map((text) => text.split(' ')[2]);
      const flushed = statuses.indexOf('FLUSHED');
      const after = flushed < 0 ? [] : statuses.slice(flushed);
      assert.ok(
        after.every((status) => status === 'FLUSHED'),
        statuses.join(),
      );
    },
  );

  claim('memory is free again once its requests have ended', async (pair) => {
    const { active, passive } = await connected(pair);
    active.ep.postRecv(active.lmr.segment(), 1);
    refuses(() => active.lmr.free(), 'DAT_INVALID_STATE_LMR_IN_USE');
    passive.ep.disconnect();
    await active.expect('dto 1 FLUSHED', 'DISCONNECTED');
    active.lmr.free();
  });
}

function otherEnds(claim: Claim): void {
  claim('free of a connected endpoint: DISCONNECTED at the peer, nothing here', async (pair) => {
    const peers = await connected(pair);
    peers.active.ep.free();
    await peers.passive.expect('DISCONNECTED');
    await expectQuiet(peers);
  });

  claim('the endpoint that was told can be freed at once', async (pair) => {
    const peers = await connected(pair);
    peers.active.ep.disconnect();
    await peers.passive.expect('DISCONNECTED');
    peers.passive.ep.free();
    await peers.active.expect('DISCONNECTED');
    peers.active.ep.free();
    await settle(pair);
  });

  claim(
    'a peer that vanishes: TRANSPORT, the rest flushed, one BROKEN',
    async (pair) => {
      const transport = { ackTimeout: 8, retryCount: 2 };
      const peers = await connected(pair, { active: { attributes: { transport } } });
      const { active, passive } = peers;
      pair.cut?.();
      active.ep.postRdmaWrite(active.lmr.segment(0, 8), 1, passive.remote());
      active.ep.postRdmaWrite(active.lmr.segment(0, 8), 2, passive.remote());
      await active.expect('dto 1 TRANSPORT', 'dto 2 FLUSHED', 'BROKEN');
      await settle(pair);
      assert.deepEqual(active.drain(), []);
    },
    ['cut'],
  );

  claim(
    'disconnect ends with DISCONNECTED although the peer has vanished',
    async (pair) => {
      const { active } = await connected(pair);
      pair.cut?.();
      active.ep.disconnect('abrupt');
      await active.expect('DISCONNECTED');
    },
    ['cut'],
  );
}
