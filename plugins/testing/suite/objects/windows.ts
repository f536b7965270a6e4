/** Memory windows (RMR): parts of regions, granted and revoked in the order of requests. */
import assert from 'node:assert/strict';
import { CompletionFlags, VaType } from 'dapl';
import { type Claim, group } from '../behaviour.js';
import { assertAll, expectQuiet, refuses, textOf, until } from '../peer.js';
import { assertRefused, at, BOTH, bound, type Make, scene, write } from './window-scene.js';
import { refusingWindows, scopingWindows } from './window-scopes.js';

export const windows = group('Windows', (claim) => {
  const needing: Claim = (name, run, more = []) => claim(name, run, ['memory-window', ...more]);
  for (const make of ['createRmr', 'createRmrForEp'] as const) {
    const kind = make === 'createRmr' ? 'zone' : 'endpoint';
    granting(needing, make, kind);
    endingBinds(needing, make, kind);
  }
  scopingWindows(needing);
  refusingWindows(needing);
});

function granting(claim: Claim, make: Make, kind: string): void {
  claim(`an RMR of the ${kind} grants its part of the region, and no byte more`, async (pair) => {
    const here = await scene(pair, make);
    const { active, passive, lmr, rmr } = here;
    const context = rmr.bind(lmr.segment(100, 64), passive.ep, { privileges: BOTH, cookie: 5 });
    const event = await bound(here);
    assert.ok(event.type === 'rmr-bind' && event.rmr === rmr && event.ep === passive.ep);
    assert.equal(event.cookie, 5);
    assert.equal(rmr.rmrContext, context);
    write(here, at(rmr));
    await active.expect('dto 1 SUCCESS');
    assertAll(lmr.bytes.subarray(100, 164), 0x11);
    lmr.bytes.fill(0xee);
    write(here, at(rmr, 1));
    await assertRefused(here);
  });

  claim(
    `an RMR of the ${kind} grants reading without writing`,
    async (pair) => {
      const here = await scene(pair, make);
      const { active, passive, lmr, rmr } = here;
      rmr.bind(lmr.segment(0, 64), passive.ep);
      await bound(here);
      active.ep.postRdmaRead(active.lmr.segment(0, 64), 1, at(rmr));
      await active.expect('dto 1 SUCCESS');
      assertAll(active.lmr.bytes.subarray(0, 64), 0xee);
      active.lmr.bytes.fill(0x11);
      write(here, at(rmr));
      await assertRefused(here);
    },
    ['rdma-read'],
  );

  claim(`a remote write through an unbound RMR of the ${kind} is refused`, async (pair) => {
    const here = await scene(pair, make);
    const { passive, lmr, rmr } = here;
    rmr.bind(lmr.segment(0, 64), passive.ep, { privileges: BOTH });
    const remote = at(rmr);
    rmr.unbind(passive.ep, { cookie: 6 });
    assert.equal(rmr.rmrContext, undefined);
    await bound(here);
    const event = await bound(here);
    assert.ok(event.type === 'rmr-bind' && event.cookie === 6);
    write(here, remote);
    await assertRefused(here);
  });

  claim(`binding a segment of length 0 unbinds an RMR of the ${kind}`, async (pair) => {
    const here = await scene(pair, make);
    const { passive, lmr, rmr } = here;
    rmr.bind(lmr.segment(0, 64), passive.ep, { privileges: BOTH });
    const remote = at(rmr);
    assert.equal(rmr.bind(lmr.segment(0, 0), passive.ep), undefined);
    assert.equal(rmr.query().lmr, undefined);
    await bound(here);
    await bound(here);
    write(here, remote);
    await assertRefused(here);
  });

  claim(`rebinding an RMR of the ${kind} kills the old context`, async (pair) => {
    const here = await scene(pair, make);
    const { active, passive, lmr, rmr } = here;
    rmr.bind(lmr.segment(0, 64), passive.ep, { privileges: BOTH });
    const old = at(rmr);
    rmr.bind(lmr.segment(4096, 64), passive.ep, { privileges: BOTH });
    assert.notEqual(rmr.rmrContext, old.rmrContext);
    await bound(here);
    await bound(here);
    write(here, at(rmr));
    await active.expect('dto 1 SUCCESS');
    assertAll(lmr.bytes.subarray(4096, 4160), 0x11);
    lmr.bytes.fill(0xee);
    write(here, old);
    await assertRefused(here);
  });

  claim(`a send posted behind a bind of the ${kind} carries a context that works`, async (pair) => {
    const here = await scene(pair, make);
    const { active, passive, lmr, rmr } = here;
    active.ep.postRecv(active.lmr.segment(4096, 64), 9);
    passive.ep.burst(() => {
      rmr.bind(lmr.segment(0, 64), passive.ep, { privileges: BOTH });
      passive.ep.postSend(passive.lmr.segment(0, 8), 2);
    });
    await active.expect('dto 9 SUCCESS');
    write(here, at(rmr));
    await active.expect('dto 1 SUCCESS');
    await bound(here);
    await passive.expect('dto 2 SUCCESS');
  });

  claim(`unbinding an unbound RMR of the ${kind} completes`, async (pair) => {
    const here = await scene(pair, make);
    here.rmr.unbind(here.passive.ep);
    await bound(here);
    assert.equal(here.passive.ep.state, 'CONNECTED');
  });

  claim(`a suppressed bind of the ${kind} shows nothing, and works`, async (pair) => {
    const here = await scene(pair, make);
    const { active, passive, lmr, rmr } = here;
    const flags = CompletionFlags.SUPPRESS;
    rmr.bind(lmr.segment(0, 64), passive.ep, { privileges: BOTH, flags });
    // A request that is posted after the bind completes after it.
    passive.ep.postRdmaWrite([], 7, active.remote());
    await passive.expect('dto 7 SUCCESS');
    write(here, at(rmr));
    await active.expect('dto 1 SUCCESS');
    await expectQuiet(here);
    rmr.free();
    lmr.free();
  });

  claim(`an RMR of the ${kind} tells what it is bound to`, async (pair) => {
    const here = await scene(pair, make);
    const { passive, lmr, rmr } = here;
    assert.equal(rmr.query().rmrContext, undefined);
    assert.equal(rmr.query().pz, passive.pz);
    assert.equal(rmr.query().scope, make === 'createRmr' ? 'PZ' : 'EP');
    const context = rmr.bind(lmr.segment(8, 16), passive.ep, { privileges: BOTH });
    await bound(here);
    const query = rmr.query();
    assert.equal(query.ia, passive.ia);
    assert.equal(query.lmr, lmr);
    assert.equal(query.lengthBytes, 16);
    assert.equal(query.address, lmr.address + 8n);
    assert.equal(query.rmrContext, context);
    assert.equal(query.privileges, BOTH);
    assert.equal(query.vaType, VaType.VA);
    assert.equal(lmr.query().boundRmrs, 1);
  });
}

function endingBinds(claim: Claim, make: Make, kind: string): void {
  claim(`a region is not freed while an RMR of the ${kind} is bound to it`, async (pair) => {
    const here = await scene(pair, make);
    const { passive, lmr, rmr } = here;
    rmr.bind(lmr.segment(0, 64), passive.ep);
    refuses(() => lmr.free(), 'DAT_INVALID_STATE_LMR_IN_USE');
    await bound(here);
    refuses(() => lmr.free(), 'DAT_INVALID_STATE');
    rmr.unbind(passive.ep);
    await bound(here);
    lmr.free();
    rmr.free();
  });

  claim(`freeing an RMR of the ${kind} unbinds it`, async (pair) => {
    const here = await scene(pair, make);
    const { passive, lmr, rmr } = here;
    rmr.bind(lmr.segment(0, 64), passive.ep, { privileges: BOTH });
    const remote = at(rmr);
    await bound(here);
    rmr.free();
    assert.equal(lmr.query().boundRmrs, 0);
    refuses(() => rmr.bind(lmr.segment(), passive.ep), 'DAT_INVALID_HANDLE_RMR');
    refuses(() => rmr.free(), 'DAT_INVALID_HANDLE_RMR');
    write(here, remote);
    await assertRefused(here);
  });

  claim(`an RMR of the ${kind} is freed while its bind is under way`, async (pair) => {
    const here = await scene(pair, make);
    const { passive, lmr, rmr } = here;
    passive.ep.burst(() => {
      rmr.bind(lmr.segment(0, 64), passive.ep, { privileges: BOTH });
      rmr.free();
    });
    await bound(here);
    await until(
      pair,
      () => lmr.query().boundRmrs === 0,
      () => `${lmr.query().boundRmrs} windows are bound to it`,
    );
    lmr.free();
    assert.equal(passive.ep.state, 'CONNECTED');
  });

  claim(`binds of the ${kind} on a disconnected endpoint are flushed`, async (pair) => {
    const here = await scene(pair, make);
    const { active, passive, lmr, rmr } = here;
    active.ep.disconnect();
    await active.until('DISCONNECTED');
    await passive.until('DISCONNECTED');
    rmr.bind(lmr.segment(0, 64), passive.ep, { privileges: BOTH });
    await bound(here, 'FLUSHED');
    assert.equal(rmr.rmrContext, undefined);
    lmr.free();
  });

  claim(
    `when the peer dies, binds of the ${kind} end, each with one event`,
    async (pair) => {
      const here = await scene(pair, make);
      const { active, passive, lmr, rmr } = here;
      const flags = CompletionFlags.BARRIER_FENCE;
      for (let i = 0; i < 8; i++) {
        passive.ep.postRdmaRead(passive.lmr.segment(0, 8), i, active.remote());
        rmr.bind(lmr.segment(i * 64, 64), passive.ep, { cookie: 100 + i, flags });
      }
      active.ep.free();
      const cookies: number[] = [];
      let end = '';
      while (end === '') {
        const event = await passive.next();
        if (event.type === 'rmr-bind') cookies.push(event.cookie);
        if (event.type === 'connection') end = textOf(event);
      }
      assert.match(end, /^(BROKEN|DISCONNECTED)$/);
      assert.deepEqual(cookies, [100, 101, 102, 103, 104, 105, 106, 107]);
      rmr.free();
      lmr.free();
    },
    ['rdma-read'],
  );

  claim(`an adapter closes with an RMR of the ${kind} bound`, async (pair) => {
    const here = await scene(pair, make);
    const { passive, lmr, rmr } = here;
    rmr.bind(lmr.segment(0, 64), passive.ep, { privileges: BOTH });
    await passive.ia.close();
    assert.equal(rmr.isFreed, true);
    assert.equal(lmr.isFreed, true);
  });
}
