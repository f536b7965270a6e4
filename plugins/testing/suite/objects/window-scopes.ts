/** Scope of memory windows: the endpoints that may use one, and the memory it may cover. */
import assert from 'node:assert/strict';
import { CompletionFlags, type Ep, EvdFlags, MemPrivileges, VaType } from 'dapl';
import type { Claim } from '../behaviour.js';
import { assertAll, connected, join, meet, refuses } from '../peer.js';
import { assertRefused, at, BOTH, bound, type Scene, scene, write } from './window-scene.js';

const { LOCAL_READ, LOCAL_WRITE, REMOTE_READ, REMOTE_WRITE } = MemPrivileges;

export function scopingWindows(claim: Claim): void {
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

export function refusingWindows(claim: Claim): void {
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
