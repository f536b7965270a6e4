import assert from 'node:assert/strict';
import { type DatEvent, EvdFlags, type Ia, openIa, type Upcall } from '../../../core/index.js';
import { Fabric, mock } from '../../../providers/mock/index.js';

const SOFTWARE = EvdFlags.SOFTWARE;

type Body = (ia: Ia, event: DatEvent, upcall: Upcall) => Promise<void>;

/** Closes an adapter from `upcalls` upcalls that overlap; returns what happened, in order. */
async function closeFrom(upcalls: number, close: Body): Promise<string[]> {
  const fabric = new Fabric({ seed: 1, autoRun: false });
  const ia = await openIa(mock({ fabric, address: '192.0.2.1' }));
  const log: string[] = [];
  let ended = 0;
  const evd = ia.createEvd({
    qlen: 8,
    streams: SOFTWARE,
    policy: 'MANY',
    handler: async (event, upcall) => {
      await close(ia, event, upcall);
      log.push('closed');
      ended++;
    },
  });
  for (let i = 0; i < upcalls; i++) evd.postSe(i);
  await fabric.run({ forUs: 1000 });
  assert.equal(ended, upcalls, 'a close waits for its own upcall');
  assert.ok(ia.isFreed);
  return log;
}

describe('closing an adapter from upcalls', () => {
  it('does not wait for the upcall that closes', async () => {
    assert.deepEqual(await closeFrom(1, (ia) => ia.close()), ['closed']);
  });

  it('does not wait for any of several that close', async () => {
    assert.deepEqual(await closeFrom(2, (ia) => ia.close()), ['closed', 'closed']);
  });

  it('knows an upcall that goes on asynchronously by the option', async () => {
    const later: Body = async (ia, _event, upcall) => {
      await Promise.resolve();
      await ia.close('abrupt', { upcall });
    };
    assert.deepEqual(await closeFrom(3, later), ['closed', 'closed', 'closed']);
  });

  it('waits for an upcall that does not close', async () => {
    const fabric = new Fabric({ seed: 1, autoRun: false });
    const ia = await openIa(mock({ fabric, address: '192.0.2.1' }));
    let open = (): void => undefined;
    const gate = new Promise<void>((resolve) => (open = resolve));
    const evd = ia.createEvd({ qlen: 8, streams: SOFTWARE, policy: 'ONE', handler: () => gate });
    evd.postSe(1);
    await fabric.run({ forUs: 100 });
    let closed = false;
    const closing = ia.close().then(() => (closed = true));
    await fabric.run({ forUs: 100 });
    assert.equal(closed, false);
    open();
    await fabric.run({ forUs: 100 });
    await closing;
  });

  it('ends CNOs after event dispatchers: their waiters hear that all are gone', async () => {
    const fabric = new Fabric({ seed: 1, autoRun: false });
    const ia = await openIa(mock({ fabric, address: '192.0.2.1' }));
    const [watched, lonely] = [ia.createCno(), ia.createCno()];
    ia.createEvd({ qlen: 8, streams: SOFTWARE, cno: watched });
    const waiting = watched.wait();
    const dead = assert.rejects(lonely.wait(), { subtype: 'DAT_INVALID_STATE_CNO_DEAD' });
    await assert.rejects(ia.close('graceful'), { subtype: 'DAT_INVALID_STATE_IA_IN_USE' });
    const closing = ia.close();
    await fabric.run({ forUs: 100 });
    assert.equal(await waiting, undefined);
    await Promise.all([closing, dead]);
    assert.ok(watched.isFreed && lonely.isFreed);
    assert.throws(() => ia.createCno(), { code: 'DAT_INVALID_HANDLE' });
  });

  it('a graceful close waits for the CNOs to be freed', async () => {
    const fabric = new Fabric({ seed: 1, autoRun: true });
    const ia = await openIa(mock({ fabric, address: '192.0.2.1' }));
    const cno = ia.createCno();
    await assert.rejects(ia.close('graceful'), { subtype: 'DAT_INVALID_STATE_IA_IN_USE' });
    cno.free();
    await ia.close('graceful');
  });
});
