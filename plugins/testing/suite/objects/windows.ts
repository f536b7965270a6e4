/** Memory windows (RMR): parts of regions, granted and revoked in the order of requests. */
import assert from 'node:assert/strict';
import { CompletionFlags, type Ep, EvdFlags, MemPrivileges, VaType } from 'dapl';
import { type Claim, group } from '../behaviour.js';
import { assertAll, connected, expectQuiet, join, meet, refuses, textOf, until } from '../peer.js';
import {
  assertRefused,
  at,
  BOTH,
  bound,
  type Make,
  scene,
  type Scene,
  write,
} from './window-scene.js';

const { LOCAL_READ, LOCAL_WRITE, REMOTE_READ, REMOTE_WRITE } = MemPrivileges;

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

function scopingWindows(claim: Claim): void {
  /** Connects a second pair of endpoints. */
  async function second(here: Scene): Promise<{ readonly from: Ep; readonly to: Ep }> {
    const [from, to] = [here.active.endpoint(), here.passive.endpoint()];
    await join(here, from, to);
    return { from, to };
  }

  const invalidating: Claim = (name, run) => claim(name, run, ['send-with-invalidate']);

  claim('an RMR of the zone is open to every endpoint of it', async (pair) => {
    const here = await scene(pair, 'createRmr');
    const { from } = await second(here);
    here.rmr.bind(here.lmr.segment(0, 64), here.passive.ep, { privileges: BOTH });
    await bound(here);
    from.postRdmaWrite(here.active.lmr.segment(0, 64), 1, at(here.rmr));
    await here.active.expect('dto 1 SUCCESS');
  });

  claim('an RMR of an endpoint is open to that one only', async (pair) => {
    const here = await scene(pair, 'createRmrForEp');
    const { from } = await second(here);
    here.rmr.bind(here.lmr.segment(0, 64), here.passive.ep, { privileges: BOTH });
    await bound(here);
    from.postRdmaWrite(here.active.lmr.segment(0, 64), 1, at(here.rmr));
    await assertRefused(here);
    assert.equal(here.active.ep.state, 'CONNECTED');
  });

  claim('an RMR of the zone outlives the endpoint that it was bound through', async (pair) => {
    const here = await scene(pair, 'createRmr');
    const { from } = await second(here);
    here.rmr.bind(here.lmr.segment(0, 64), here.passive.ep, { privileges: BOTH });
    await bound(here);
    here.passive.ep.free();
    from.postRdmaWrite(here.active.lmr.segment(0, 64), 1, at(here.rmr));
    assert.ok((await here.active.until('dto 1 SUCCESS')).length > 0);
  });

  claim('an RMR of an endpoint ends with it, and is bound again through another', async (pair) => {
    const here = await scene(pair, 'createRmrForEp');
    const { passive, lmr, rmr } = here;
    const { from, to } = await second(here);
    rmr.bind(lmr.segment(0, 64), passive.ep, { privileges: BOTH });
    await bound(here);
    refuses(() => rmr.bind(lmr.segment(0, 64), to), 'DAT_INVALID_STATE');
    refuses(() => rmr.unbind(to), 'DAT_INVALID_STATE');
    passive.ep.free();
    assert.equal(rmr.query().lmr, undefined);
    rmr.bind(lmr.segment(0, 64), to, { privileges: BOTH });
    await bound(here);
    from.postRdmaWrite(here.active.lmr.segment(0, 64), 1, at(rmr));
    assert.ok((await here.active.until('dto 1 SUCCESS')).length > 0);
  });

  invalidating('the peer invalidates the RMR of an endpoint with a send', async (pair) => {
    const here = await scene(pair, 'createRmrForEp');
    const { active, passive, lmr, rmr } = here;
    const context = rmr.bind(lmr.segment(0, 64), passive.ep, { privileges: BOTH }) ?? 0;
    await bound(here);
    passive.ep.postRecv(passive.lmr.segment(0, 64), 3);
    active.ep.postSendWithInvalidate(active.lmr.segment(0, 8), 4, context);
    const [event] = await passive.expect('dto 3 SUCCESS');
    assert.ok(event?.type === 'dto' && event.invalidatedRmrContext === context);
    await active.expect('dto 4 SUCCESS');
    assert.equal(rmr.rmrContext, undefined);
    lmr.free();
  });

  invalidating(
    'a send that invalidates no window of its connection fails its receive',
    async (pair) => {
      const here = await scene(pair, 'createRmr');
      const { active, passive, lmr, rmr } = here;
      const context = rmr.bind(lmr.segment(0, 64), passive.ep, { privileges: BOTH }) ?? 0;
      await bound(here);
      passive.ep.postRecv(passive.lmr.segment(0, 64), 3);
      active.ep.postSendWithInvalidate(active.lmr.segment(0, 8), 4, context);
      const [text] = await passive.until('BROKEN');
      assert.match(text ?? '', /^dto 3 (?!SUCCESS)/);
      assert.equal(rmr.rmrContext, context, 'a window of the zone stays');
    },
  );

  claim('the RMR of an endpoint may be zero-based', async (pair) => {
    const here = await scene(pair, 'createRmrForEp');
    const { active, passive, lmr, rmr } = here;
    rmr.bind(lmr.segment(100, 64), passive.ep, { privileges: BOTH, vaType: VaType.ZB });
    await bound(here);
    assert.equal(rmr.address, 0n);
    write(here, at(rmr));
    await active.expect('dto 1 SUCCESS');
    assertAll(lmr.bytes.subarray(100, 164), 0x11);
  });
}

function refusingWindows(claim: Claim): void {
  claim('an RMR grants no more than its region lets it: DAT_PRIVILEGES_VIOLATION', async (pair) => {
    const here = await scene(pair, 'createRmr', LOCAL_READ);
    const { passive, lmr, rmr } = here;
    const bind = (privileges: number, to = lmr): unknown =>
      rmr.bind(to.segment(0, 8), passive.ep, { privileges });
    refuses(() => bind(REMOTE_WRITE), 'DAT_PRIVILEGES_RDMA_WRITE');
    const writable = passive.ia.allocate(8, { pz: passive.pz, privileges: LOCAL_WRITE });
    refuses(() => bind(REMOTE_READ, writable), 'DAT_PRIVILEGES_RDMA_READ');
    bind(REMOTE_READ);
    await bound(here);
  });

  claim('an RMR, its region and its endpoint are of one zone', async (pair) => {
    const { passive, lmr, rmr } = await scene(pair, 'createRmr');
    const { ia, ep } = passive;
    const foreign = ia.createPz();
    const memory = ia.allocate(64, { pz: foreign });
    refuses(() => rmr.bind(memory.segment(), ep), 'DAT_PROTECTION_VIOLATION');
    const other = ia.createRmr(foreign);
    refuses(() => other.bind(lmr.segment(), ep), 'DAT_PROTECTION_VIOLATION');
    refuses(() => other.unbind(ep), 'DAT_PROTECTION_VIOLATION');
    refuses(() => foreign.free(), 'DAT_INVALID_STATE_PZ_IN_USE');
  });

  claim('an RMR is bound on a connection only: DAT_INVALID_STATE', async (pair) => {
    const { passive } = meet(pair);
    const rmr = passive.ia.createRmr(passive.pz);
    const bind = (): unknown => rmr.bind(passive.lmr.segment(), passive.ep);
    refuses(bind, 'DAT_INVALID_STATE_EP_UNCONNECTED');
    refuses(() => rmr.unbind(passive.ep), 'DAT_INVALID_STATE_EP_UNCONNECTED');
    assert.equal(rmr.rmrContext, undefined);
    assert.equal(passive.lmr.query().boundRmrs, 0);
  });

  claim('a bind with a wrong parameter is refused, and nothing is bound', async (pair) => {
    const { passive, active, lmr, rmr } = await scene(pair, 'createRmr');
    const { ep } = passive;
    const part = lmr.segment(0, 64);
    refuses(() => rmr.bind(part, ep, { privileges: 0x100 }), 'DAT_INVALID_PARAMETER');
    refuses(() => rmr.bind(part, ep, { cookie: -1 }), 'DAT_INVALID_PARAMETER');
    const { SOLICITED_WAIT } = CompletionFlags;
    refuses(() => rmr.bind(part, ep, { flags: SOLICITED_WAIT }), 'DAT_INVALID_PARAMETER');
    refuses(() => rmr.bind(part, ep, { vaType: VaType.ZB }), 'DAT_MODEL_NOT_SUPPORTED');
    refuses(() => rmr.bind(part, active.ep), 'DAT_INVALID_HANDLE_EP');
    refuses(() => rmr.bind(active.lmr.segment(), ep), 'DAT_INVALID_HANDLE_LMR');
    refuses(() => rmr.bind({} as never, ep), 'DAT_INVALID_PARAMETER');
    const zb = passive.ia.allocate(64, { pz: passive.pz, vaType: VaType.ZB });
    refuses(() => rmr.bind(zb.segment(), ep), 'DAT_MODEL_NOT_SUPPORTED');
    assert.equal(rmr.query().lmr, undefined);
    assert.equal(ep.state, 'CONNECTED');
  });

  claim('a bind needs a request EVD with RMR_BIND: DAT_INVALID_STATE', async (pair) => {
    const peers = meet(pair);
    const { active, passive } = peers;
    const requestEvd = passive.ia.createEvd({ qlen: 64, streams: EvdFlags.DTO });
    const ep = passive.endpoint(passive.evd, { requestEvd });
    await join(peers, active.ep, ep);
    const rmr = passive.ia.createRmr(passive.pz);
    refuses(() => rmr.bind(passive.lmr.segment(), ep), 'DAT_INVALID_STATE_EP_EVD_REQUEST');
  });

  claim('binds take room in the request queue: DAT_RESOURCE_CREDITS', async (pair) => {
    const peers = await connected(pair, { attributes: { maxRequestDtos: 3 } });
    const { passive } = peers;
    const { ep, ia, pz, lmr } = passive;
    const rmr = ia.createRmrForEp(pz);
    ep.burst(() => {
      rmr.bind(lmr.segment(0, 8), ep);
      rmr.bind(lmr.segment(8, 8), ep);
      refuses(() => rmr.bind(lmr.segment(16, 8), ep), 'DAT_RESOURCE_CREDITS');
      refuses(() => rmr.unbind(ep), 'DAT_RESOURCE_CREDITS');
    });
    await passive.next();
    await passive.next();
    assert.equal(rmr.query().address, lmr.address + 8n);
    rmr.unbind(ep);
    await passive.next();
  });
}
