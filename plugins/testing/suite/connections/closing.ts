/** Closing an adapter with all of its objects, and sharing a device between adapters. */
import assert from 'node:assert/strict';
import { DatError } from 'dapl';
import { definePlugin } from 'dapl/spi';
import { type Claim, group } from '../behaviour.js';
import { connected, meet, Peer, refuses, textOf } from '../peer.js';

function isDatError(code: string): (error: unknown) => boolean {
  return (error) => DatError.isDatError(error) && (error.code === code || error.subtype === code);
}

export const closing = group('Closing', (claim) => {
  claim('graceful close is refused while objects are left, and changes nothing', async (pair) => {
    const { active, passive } = await connected(pair);
    await assert.rejects(active.ia.close('graceful'), isDatError('DAT_INVALID_STATE_IA_IN_USE'));
    active.ep.postRdmaWrite(active.lmr.segment(0, 8), 1, passive.remote());
    await active.expect('dto 1 SUCCESS');
  });

  claim('graceful close of an adapter without objects', async ({ active }) => {
    const evd = active.createEvd({ qlen: 4 });
    const pz = active.createPz();
    pz.free();
    await evd.free();
    await active.close('graceful');
    refuses(() => active.createPz(), 'DAT_INVALID_HANDLE_IA');
  });

  claim('close is idempotent, also at once and with either flag', async ({ active }) => {
    await Promise.all([active.close(), active.close(), active.close('graceful')]);
    await active.close();
  });

  claim('abrupt close ends every object: its calls throw DAT_INVALID_HANDLE', async (pair) => {
    const { active } = await connected(pair);
    await active.ia.close();
    refuses(() => active.ep.postRecv([]), 'DAT_INVALID_HANDLE_EP');
    refuses(() => active.lmr.segment(), 'DAT_INVALID_HANDLE_LMR');
    refuses(() => active.pz.free(), 'DAT_INVALID_HANDLE_PZ');
    refuses(() => active.evd.dequeue(), 'DAT_INVALID_HANDLE');
  });

  claim('abrupt close with traffic in flight: the peer is told, once', async (pair) => {
    const peers = await connected(pair, { lengthBytes: 1 << 20 });
    const { active, passive } = peers;
    passive.ep.postRecv(passive.lmr.segment(), 1);
    for (let i = 0; i < 20; i++) {
      active.ep.postRdmaWrite(active.lmr.segment(), i, passive.remote());
      passive.ep.postRdmaWrite(passive.lmr.segment(), 100 + i, active.remote());
    }
    await new Promise((resolve) => setImmediate(resolve));
    await active.ia.close();
    const seen: string[] = [];
    while (!/BROKEN|DISCONNECTED/.test(seen.at(-1) ?? '')) seen.push(textOf(await passive.next()));
    assert.ok(seen.includes('dto 1 FLUSHED'));
    const cookies = seen.filter((text) => text.startsWith('dto')).map((text) => text.split(' ')[1]);
    assert.equal(cookies.length, 21);
    assert.equal(new Set(cookies).size, 21, 'each request and receive has ended once');
    assert.deepEqual(passive.drain(), []);
  });

  claim('abrupt close of the accepting side: the connecting one is told', async (pair) => {
    const { active, passive } = await connected(pair);
    await passive.ia.close();
    await active.expect('DISCONNECTED');
  });

  claim('close with an unanswered request: the peer is refused', async (pair) => {
    const { active, passive } = meet(pair);
    passive.ia.createPsp({ connQual: 7, evd: passive.evd });
    active.ep.connect({ address: pair.passiveAddress, connQual: 7, timeoutMs: 3000 });
    await passive.request();
    await passive.ia.close();
    assert.match(textOf(await active.next()), /PEER_REJECTED/);
  });

  claim('close ends a waiter with DAT_ABORT', async ({ active }) => {
    const evd = active.createEvd({ qlen: 4 });
    const waiting = assert.rejects(evd.wait(), isDatError('DAT_ABORT'));
    await active.close();
    await waiting;
  });

  parents(claim);
  sharing(claim);
});

function parents(claim: Claim): void {
  claim('what is in use is not freed: zone, region, dispatcher', async (pair) => {
    const { active } = await connected(pair);
    active.ep.postRecv(active.lmr.segment(), 1);
    refuses(() => active.pz.free(), 'DAT_INVALID_STATE_PZ_IN_USE');
    refuses(() => active.lmr.free(), 'DAT_INVALID_STATE_LMR_IN_USE');
    await assert.rejects(active.evd.free(), isDatError('DAT_INVALID_STATE_EVD_IN_USE'));
    active.ep.free();
    active.lmr.free();
    active.pz.free();
    await active.evd.free();
    await active.ia.close('graceful');
  });

  claim('free of what was freed: DAT_INVALID_HANDLE', async (pair) => {
    const { active } = meet(pair);
    const psp = active.ia.createPsp({ connQual: 9 });
    for (const handle of [active.ep, active.lmr, active.pz, psp]) {
      handle.free();
      refuses(() => handle.free(), 'DAT_INVALID_HANDLE');
    }
    await active.evd.free();
    await assert.rejects(active.evd.free(), isDatError('DAT_INVALID_HANDLE'));
  });
}

function sharing(claim: Claim): void {
  const needs = ['second-adapter'] as const;
  claim(
    'two adapters share a device: one closes, the other goes on',
    async (pair) => {
      const { active, passive } = await connected(pair);
      const again = await pair.openPassiveAgain?.();
      assert.ok(again !== undefined);
      new Peer(again);
      await again.close();
      active.ep.postRdmaWrite(active.lmr.segment(0, 8), 1, passive.remote());
      await active.expect('dto 1 SUCCESS');
    },
    needs,
  );

  claim(
    'objects of another adapter on the same device are foreign',
    async (pair) => {
      const again = await pair.openPassiveAgain?.();
      assert.ok(again !== undefined);
      const pz = again.createPz();
      refuses(() => pair.passive.createEndpoint({ pz }), 'DAT_INVALID_HANDLE_PZ');
      await again.close();
    },
    needs,
  );

  claim(
    'a qualifier is taken for all adapters of a device',
    async (pair) => {
      const again = await pair.openPassiveAgain?.();
      pair.passive.createPsp({ connQual: 7 });
      refuses(() => again?.createPsp({ connQual: 7 }), 'DAT_CONN_QUAL_IN_USE');
      await again?.close();
    },
    needs,
  );

  claim(
    'another module for a device that is open: DAT_INVALID_STATE',
    async (pair) => {
      const meta = { name: 'other-cm', sdkVersion: '2.0', requires: [], provides: ['cm'] } as const;
      const other = definePlugin({ ...meta, kind: 'cm', inject: {} }, () => {
        throw new Error('a module of an open device is not made again');
      });
      const opening = pair.openPassiveAgain?.({ modules: { cm: other({}) } });
      await assert.rejects(opening ?? Promise.resolve(), isDatError('DAT_INVALID_STATE'));
    },
    needs,
  );
}
