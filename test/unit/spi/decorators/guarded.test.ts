// The guard of the contract and an observer over each provider: what connections, messages, RDMA
// and their ends do makes no breach, and is seen.
import assert from 'node:assert/strict';
import { observe, strict } from 'dapl/spi/decorators';
import { QpState, WcStatus } from 'dapl/spi';
import { connected } from '../../../../plugins/testing/suite/peer.js';
import { PROVIDER_PAIRS, withAdapters } from '../../../support/every-provider.js';

describe('A guarded and observed provider', () => {
  for (const [name, pairOf] of Object.entries(PROVIDER_PAIRS)) {
    it(`keeps the contract, and is seen at work: ${name}`, async () => {
      const breaches: string[] = [];
      const posted: string[] = [];
      const completed = new Map<number, number>();
      const states = new Set<QpState>();
      const pair = pairOf();
      const guarded = (provider: typeof pair.active): typeof pair.active =>
        strict(provider, ({ message }) => void breaches.push(message));
      const active = observe(guarded(pair.active), {
        posted: ({ kind, lengthBytes }) => void posted.push(`${kind} ${lengthBytes}`),
        completed: ({ status }) => void completed.set(status, (completed.get(status) ?? 0) + 1),
        changed: (_qpn, state) => void states.add(state),
      });
      await withAdapters({ ...pair, active, passive: guarded(pair.passive) }, async (opened) => {
        const { active: a, passive: b } = await connected(opened);
        b.ep.postRecv(b.lmr.segment(0, 100), 1);
        a.ep.postSend(a.lmr.segment(0, 41), 2);
        await b.expect('dto 1 SUCCESS');
        await a.expect('dto 2 SUCCESS');
        a.ep.postRdmaWrite(a.lmr.segment(0, 43), 3, b.remote());
        await a.expect('dto 3 SUCCESS');
        a.ep.postRecv(a.lmr.segment(0, 47), 4);
        a.ep.disconnect('abrupt');
        await a.until('DISCONNECTED');
        await b.until('DISCONNECTED');
      });
      assert.deepEqual(breaches, []);
      for (const each of ['send 41', 'send 43', 'receive 47']) {
        assert.equal(posted.filter((found) => found === each).length, 1, each);
      }
      assert.ok((completed.get(WcStatus.SUCCESS) ?? 0) >= 2);
      assert.ok((completed.get(WcStatus.WR_FLUSH_ERR) ?? 0) >= 1);
      for (const state of [QpState.INIT, QpState.RTR, QpState.RTS, QpState.ERR]) {
        assert.ok(states.has(state), `state ${state}`);
      }
    });
  }
});
