/** CNOs under traffic, and calls of event dispatchers that do not dispatch. */
import assert from 'node:assert/strict';
import { type Evd, EvdFlags } from 'dapl';
import { type Claim, group } from '../behaviour.js';
import { ask, connected, meet, refuses, settle, textOf, until, waiting } from '../peer.js';
import { PATIENCE_MS } from '../pace.js';

const SOFTWARE = EvdFlags.SOFTWARE;

/** Takes all pending events, as texts. */
function drain(evd: Evd): string[] {
  const texts: string[] = [];
  for (let event = evd.dequeue(); event !== undefined; event = evd.dequeue()) {
    texts.push(textOf(event));
  }
  return texts;
}

export const cnos = group('Notification objects', (claim) => {
  claim(
    'one CNO waits for receives, connection events and requests of three EVDs',
    async (pair) => {
      const peers = meet(pair);
      const { active, passive } = peers;
      const { ia, pz } = passive;
      const cno = ia.createCno();
      const make = (qlen: number): Evd => ia.createEvd({ qlen, cno });
      const evds = [make(64), make(64), make(8)] as const;
      const [recvEvd, requestEvd, connectEvd] = evds;
      const ep = ia.createEndpoint({ pz, recvEvd, requestEvd, connectEvd });
      for (let i = 0; i < 20; i++) ep.postRecv(passive.lmr.segment(i, 1), i);
      const seen: string[] = [];
      const loop = (async () => {
        while (!seen.includes('DISCONNECTED')) {
          const hint = await cno.wait({ timeoutMs: PATIENCE_MS });
          assert.ok(hint !== undefined && evds.includes(hint));
          for (const evd of evds) seen.push(...drain(evd));
        }
      })();
      (await ask(peers)).accept(ep);
      await active.expect('ESTABLISHED');
      for (let i = 0; i < 20; i++) active.ep.postSend(active.lmr.segment(i, 1), i);
      active.ep.disconnect('graceful');
      await loop;
      const receives = Array.from({ length: 20 }, (_, i) => `dto ${i} SUCCESS`);
      assert.deepEqual(
        seen.filter((text) => text.startsWith('dto')),
        receives,
      );
      assert.ok(seen.includes('ESTABLISHED'));
    },
  );

  claim('a failed request is told, and then BROKEN, while nobody but a CNO waits', async (pair) => {
    const { active, passive } = await connected(pair);
    const cno = active.ia.createCno();
    active.evd.modifyCno(cno);
    const remote = passive.remote(1 << 30);
    active.ep.postRdmaWrite(active.lmr.segment(0, 8), 1, remote);
    const seen: string[] = [];
    while (!seen.includes('BROKEN')) {
      assert.equal(await cno.wait({ timeoutMs: PATIENCE_MS }), active.evd);
      seen.push(...drain(active.evd));
    }
    assert.deepEqual(seen, ['dto 1 REMOTE_ACCESS', 'BROKEN']);
  });

  triggering(claim);
  resizing(claim);
});

function triggering(claim: Claim): void {
  claim('an agent is called once, from outside the call that causes it', async (pair) => {
    const { active } = pair;
    const calls: unknown[] = [];
    const cno = active.createCno({ agent: (evd) => void calls.push(evd) });
    const evd = active.createEvd({ qlen: 8, streams: SOFTWARE, cno });
    evd.postSe(1);
    const before = calls.length;
    await until(
      pair,
      () => calls.length > 0,
      () => 'the agent has not been called',
    );
    evd.postSe(2);
    await settle(pair);
    assert.equal(before, 0);
    assert.ok(calls.length === 1 && calls[0] === evd);
  });

  claim('a disabled EVD notifies nobody, and tells when it is enabled', async (pair) => {
    const { active } = pair;
    const cno = active.createCno();
    const evd = active.createEvd({ qlen: 8, streams: SOFTWARE, cno });
    evd.disable();
    evd.postSe(1);
    await settle(pair);
    await assert.rejects(cno.wait({ timeoutMs: 0 }), /DAT_QUEUE_EMPTY/);
    evd.enable();
    assert.equal(await cno.wait({ timeoutMs: PATIENCE_MS }), evd);
  });

  claim('notifications$ and the handle tell of each trigger', async (pair) => {
    const { active } = pair;
    const cno = active.createCno();
    const evd = active.createEvd({ qlen: 8, streams: SOFTWARE, cno });
    let readable = 0;
    cno.handle.on('readable', () => readable++);
    evd.postSe(1);
    await until(
      pair,
      () => readable > 0,
      () => 'the handle has not told of the trigger',
    );
    assert.deepEqual([readable, cno.handle.readable], [1, true]);
    assert.equal(cno.handle.take(), evd);
    const seen: unknown[] = [];
    const subscription = cno.notifications$.subscribe((hint) => seen.push(hint));
    evd.postSe(2);
    await until(
      pair,
      () => seen.length > 0,
      () => 'the stream has not told of the trigger',
    );
    assert.deepEqual([seen.length, readable], [1, 1]);
    subscription.unsubscribe();
  });

  claim('a waiter of a CNO hears that its last EVD has gone', async ({ active }) => {
    const cno = active.createCno();
    const evd = active.createEvd({ qlen: 8, streams: SOFTWARE, cno });
    refuses(() => cno.free(), 'DAT_INVALID_STATE_CNO_IN_USE');
    const waiting = cno.wait({ timeoutMs: PATIENCE_MS });
    await evd.free();
    assert.equal(await waiting, undefined);
    cno.free();
    refuses(() => cno.query(), 'DAT_INVALID_HANDLE_CNO');
  });
}

function resizing(claim: Claim): void {
  claim(
    'a dispatcher is resized while completions and a waiter wait: none is lost',
    async (pair) => {
      const { active, passive } = await connected(pair, { active: { attributes: {} } });
      const thirty = active.evd.wait({ threshold: 30, timeoutMs: PATIENCE_MS });
      for (let i = 0; i < 30; i++) {
        if (i === 10) active.evd.resize(active.evd.query().qlen * 2);
        if (i === 20) await waiting(pair, active, 20);
        if (i === 21) refuses(() => active.evd.resize(16), 'DAT_INVALID_STATE');
        active.ep.postRdmaWrite(active.lmr.segment(0, 8), i, passive.remote());
      }
      const { event, nmore } = await thirty;
      assert.equal(nmore, 29);
      const rest = Array.from({ length: 29 }, (_, i) => `dto ${i + 1} SUCCESS`);
      assert.deepEqual([textOf(event), ...drain(active.evd)], ['dto 0 SUCCESS', ...rest]);
    },
  );
}
