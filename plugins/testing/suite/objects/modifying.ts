/** Modifying an endpoint: the attributes that may change in each state, and posted receives. */
import assert from 'node:assert/strict';
import { CompletionFlags, EP_FIELDS, EvdFlags, MemPrivileges, type ModifyOptions } from 'dapl';
import { group } from '../behaviour.js';
import { ask, assertAll, connect, connected, meet, refuses, settle } from '../peer.js';
import { PATIENCE_MS } from '../pace.js';

export const modifying = group('Modifying endpoints', (claim) => {
  claim('other sizes: receives that are posted stay posted, in order', async (pair) => {
    const peers = meet(pair);
    const { active, passive } = peers;
    const { ep, lmr } = passive;
    const { maxDtoPerEp, maxIovSegmentsPerDto: most } = passive.ia.query().ia;
    const first = most < 2 ? [lmr.segment(0, 8)] : [lmr.segment(0, 3), lmr.segment(10, 5)];
    ep.postRecv(first, 1);
    ep.postRecv(lmr.segment(100, 100), 2);
    const maxRecvDtos = Math.min(300, maxDtoPerEp);
    const maxRequestDtos = Math.min(200, maxDtoPerEp);
    ep.modify({ attributes: { maxRecvDtos, maxRecvIov: Math.min(3, most), maxRequestDtos } });
    assert.equal(ep.attributes.maxRecvDtos, maxRecvDtos);
    assert.equal(ep.receivesFree, maxRecvDtos - 2);
    assert.equal(ep.requestsFree, maxRequestDtos);
    ep.postRecv(lmr.segment(200, 100), 3);
    await connect(peers);
    active.lmr.bytes.fill(0x61, 0, 8);
    for (const cookie of [1, 2, 3]) active.ep.postSend(active.lmr.segment(0, 8), cookie);
    await passive.expect('dto 1 SUCCESS', 'dto 2 SUCCESS', 'dto 3 SUCCESS');
    for (const { bytes } of first) assertAll(bytes, 0x61);
    const filled = lmr.bytes.subarray(0, 100).filter((byte) => byte !== 0);
    assert.equal(filled.length, 8, 'nothing between the segments is written');
    assert.equal(lmr.bytes[207], 0x61);
  });

  claim('other event dispatchers take the events from then on', async (pair) => {
    const peers = meet(pair);
    const { active, passive } = peers;
    const { ia, ep, evd } = active;
    const requestEvd = ia.createEvd({ qlen: 32, streams: EvdFlags.DTO });
    ep.modify({ requestEvd });
    assert.equal(ep.query().requestEvd, requestEvd);
    assert.equal(ep.query().recvEvd, evd);
    await connect(peers);
    active.ep.postRdmaWrite([], 5, passive.remote());
    const { event } = await requestEvd.wait({ timeoutMs: PATIENCE_MS });
    assert.ok(event.type === 'dto' && event.cookie === 5);
    assert.deepEqual(active.drain(), []);
    await assert.rejects(requestEvd.free(), /DAT_INVALID_STATE_EVD_IN_USE/);
  });

  claim('private event dispatchers give way to given ones', async (pair) => {
    const { active } = meet(pair);
    const { ia, pz, evd } = active;
    const ep = ia.createEndpoint({ pz });
    const stream = ep.completions$;
    assert.ok(stream);
    ep.modify({ recvEvd: evd, requestEvd: evd, connectEvd: evd });
    refuses(() => ep.completions$, 'DAT_INVALID_STATE');
    refuses(() => ep.connection$, 'DAT_INVALID_STATE');
    ep.free();
    await settle(pair);
  });

  claim(
    'another zone: new receives are of that zone, old ones are protection errors',
    async (p) => {
      const peers = meet(p);
      const { active, passive } = peers;
      const { ia, ep, pz, lmr } = passive;
      const other = ia.createPz();
      const privileges = MemPrivileges.ALL;
      const there = ia.allocate(64, { pz: other, privileges });
      ep.postRecv(lmr.segment(0, 8), 1);
      ep.modify({ pz: other });
      assert.equal(ep.pz, other);
      refuses(() => ep.postRecv(lmr.segment(0, 8), 2), 'DAT_PROTECTION_WRITE');
      ep.postRecv(there.segment(), 2);
      await connect(peers);
      active.ep.postSend(active.lmr.segment(0, 8), 3);
      await passive.expect('dto 1 LOCAL_PROTECTION', 'dto 2 FLUSHED', 'BROKEN');
      refuses(() => other.free(), 'DAT_INVALID_STATE_PZ_IN_USE');
      ep.free();
      there.free();
      other.free();
      assert.equal(pz.isFreed, false);
    },
  );

  claim('read credits and lengths are those of the next connection', async (pair) => {
    const peers = meet(pair);
    peers.active.ep.modify({
      attributes: { maxRdmaReadOut: 0, maxMessageBytes: 10, maxRdmaBytes: 20 },
    });
    await connect(peers);
    const { ep, lmr } = peers.active;
    refuses(
      () => ep.postRdmaRead(lmr.segment(0, 1), 1, peers.passive.remote()),
      'DAT_INVALID_STATE',
    );
    refuses(() => ep.postSend(lmr.segment(0, 11), 1), 'DAT_LENGTH_ERROR');
    refuses(
      () => ep.postRdmaWrite(lmr.segment(0, 21), 1, peers.passive.remote()),
      'DAT_LENGTH_ERROR',
    );
  });

  claim('read-only fields are DAT_INVALID_PARAMETER by name, in every state', async (pair) => {
    const { active } = await connected(pair);
    for (const [name, { when }] of Object.entries(EP_FIELDS)) {
      if (when !== 'never') continue;
      const options = { [name]: 1 } as unknown as ModifyOptions;
      assert.throws(() => active.ep.modify(options), new RegExp(`${name} of an endpoint`));
      refuses(() => active.ep.modify(options), 'DAT_INVALID_PARAMETER');
    }
    const serviceType = { attributes: { serviceType: 'RC' } } as const;
    refuses(() => active.ep.modify(serviceType), 'DAT_INVALID_PARAMETER');
    active.ep.modify({});
  });

  claim('what a connected endpoint is made of cannot be changed', async (pair) => {
    const { active } = await connected(pair);
    const { ep, ia, evd } = active;
    const before = ep.query();
    refuses(() => ep.modify({ pz: ia.createPz() }), 'DAT_INVALID_STATE_EP_CONNECTED');
    refuses(() => ep.modify({ recvEvd: evd }), 'DAT_INVALID_STATE_EP_CONNECTED');
    const sizes = { attributes: { maxRecvDtos: 7 } };
    refuses(() => ep.modify(sizes), 'DAT_INVALID_STATE_EP_CONNECTED');
    const transport = { attributes: { transport: { retryCount: 1 } } };
    refuses(() => ep.modify(transport), 'DAT_INVALID_STATE_EP_CONNECTED');
    assert.deepEqual(ep.query(), before);
  });

  claim('values out of range change nothing', async (pair) => {
    const { active, passive } = meet(pair);
    const { ep, ia, evd } = active;
    const isWide = ep.attributes.maxRecvIov > 1;
    ep.postRecv(isWide ? [active.lmr.segment(0, 1), active.lmr.segment(1, 1)] : [], 1);
    ep.postRecv([], 2);
    const before = ep.query();
    const dto = CompletionFlags.SUPPRESS;
    const bad: readonly (readonly [ModifyOptions, string])[] = [
      [{ attributes: { maxRecvDtos: 0 } }, 'DAT_INVALID_ARG6'],
      [{ attributes: { maxRecvDtos: 1 } }, 'DAT_INVALID_ARG3'],
      [
        { attributes: { maxRecvIov: isWide ? 1 : 0 } },
        isWide ? 'DAT_INVALID_ARG3' : 'DAT_INVALID_ARG6',
      ],
      [{ attributes: { maxRequestIov: 1e6 } }, 'DAT_INVALID_ARG6'],
      [{ attributes: { recvCompletionFlags: dto } }, 'DAT_INVALID_ARG6'],
      [{ attributes: { qos: 1 } }, 'DAT_MODEL_NOT_SUPPORTED'],
      [{ pz: passive.pz }, 'DAT_INVALID_HANDLE_PZ'],
      [{ recvEvd: passive.evd }, 'DAT_INVALID_HANDLE_EVD_RECV'],
      [{ requestEvd: ia.asyncEvd }, 'DAT_INVALID_HANDLE_EVD_REQUEST'],
      [{ connectEvd: ia.asyncEvd }, 'DAT_INVALID_HANDLE_EVD_CONN'],
      [{ something: 1 } as ModifyOptions, 'DAT_INVALID_PARAMETER'],
    ];
    for (const [options, code] of bad) refuses(() => ep.modify(options), code);
    assert.deepEqual(ep.query(), before);
    assert.equal(evd.isFreed, false);
    await settle(pair);
  });

  claim('after disconnect and reset an endpoint can be modified again', async (pair) => {
    const peers = await connected(pair);
    const { active, passive } = peers;
    active.ep.disconnect();
    await active.expect('DISCONNECTED');
    refuses(() => active.ep.modify({ attributes: { maxRecvDtos: 5 } }), 'DAT_INVALID_STATE');
    active.ep.reset();
    active.ep.modify({ attributes: { maxRecvDtos: 5 } });
    await passive.until('DISCONNECTED');
    passive.ep.reset();
    const cr = await ask(peers);
    cr.accept(passive.ep);
    await active.expect('ESTABLISHED');
  });
});
