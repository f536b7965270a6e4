/** Answers to connection requests, and requests that nobody answers. */
import assert from 'node:assert/strict';
import { type DatEvent, EvdFlags, PspFlags } from 'dapl';
import { type Claim, group } from '../behaviour.js';
import type { CompliancePair } from '../fixture.js';
import { CONN_QUAL, meet, type Peer, type Peers, refuses, settle, textOf } from '../peer.js';
import { ask, converse, established, providerPsp } from './service-scene.js';
import { PATIENCE_MS } from '../pace.js';

export const answering = group('Answering requests', (claim) => {
  handingOff(claim);
  querying(claim);
  closingThem(claim);
});

function handingOff(claim: Claim): void {
  claim('a request is handed to another service point, which accepts it', async (pair) => {
    const peers = meet(pair);
    const { active, passive } = peers;
    const { ia, evd } = passive;
    const first = ia.createPsp({ connQual: CONN_QUAL, evd });
    const second = ia.createPsp({ connQual: CONN_QUAL + 1, evd });
    ask(peers, CONN_QUAL);
    const cr = await passive.request();
    refuses(() => cr.handoff(CONN_QUAL + 2), 'DAT_INVALID_PARAMETER');
    refuses(() => cr.handoff(0), 'DAT_INVALID_PARAMETER');
    cr.handoff(CONN_QUAL + 1);
    refuses(() => cr.accept(passive.ep), 'DAT_INVALID_HANDLE_CR');
    refuses(() => cr.handoff(CONN_QUAL + 1), 'DAT_INVALID_HANDLE_CR');
    const handed = await passive.request();
    assert.notEqual(handed, cr);
    assert.equal(handed.sp, second);
    assert.deepEqual([...handed.privateData.subarray(0, 3)], [1, 2, 3]);
    assert.equal(handed.remoteAddress, active.ia.address);
    first.free();
    handed.accept(passive.ep);
    await established(peers);
    await converse(peers, passive.ep);
  });

  claim('a request is handed to an RSP, and from one', async (pair) => {
    const peers = meet(pair);
    const { passive } = peers;
    const { ia, evd } = passive;
    const [a, b] = [passive.ep, passive.endpoint()];
    ia.createRsp({ connQual: CONN_QUAL, ep: a, evd });
    ia.createRsp({ connQual: CONN_QUAL + 1, ep: b, evd });
    ask(peers, CONN_QUAL);
    (await passive.request()).handoff(CONN_QUAL + 1);
    assert.equal(a.state, 'UNCONNECTED');
    const cr = await passive.request();
    assert.equal(cr.ep, b);
    cr.accept();
    await established(peers);
  });

  claim(
    'a request that the other cannot take stays, and the peer notices nothing',
    async (pair) => {
      const peers = meet(pair);
      const { passive } = peers;
      const { ia, evd, pz } = passive;
      ia.createPsp({ connQual: CONN_QUAL, evd });
      const narrow = ia.createEvd({ qlen: 1, streams: EvdFlags.CR | EvdFlags.SOFTWARE });
      ia.createPsp({ connQual: CONN_QUAL + 1, evd: narrow });
      narrow.postSe('full');
      ia.createRsp({ connQual: CONN_QUAL + 2, ep: passive.endpoint(), evd: narrow });
      const endpoint = { pz, attributes: { maxRecvDtos: 1 } };
      const flags = PspFlags.PROVIDER;
      ia.createPsp({ connQual: CONN_QUAL + 3, evd: narrow, flags, endpoint });
      ask(peers, CONN_QUAL);
      const cr = await passive.request();
      for (const connQual of [CONN_QUAL + 1, CONN_QUAL + 2, CONN_QUAL + 3]) {
        refuses(() => cr.handoff(connQual), 'DAT_RESOURCE_TEVD');
      }
      assert.equal(cr.state, 'PENDING');
      assert.equal(ia.asyncEvd.dequeue(), undefined);
      assert.equal(narrow.query().pending, 1);
      narrow.dequeue();
      cr.handoff(CONN_QUAL + 1);
      const event = narrow.dequeue();
      assert.ok(event?.type === 'connection-request');
      event.cr.accept(passive.ep);
      await established(peers);
    },
  );

  claim(
    'a request is handed to a service point of another adapter of the device',
    async (pair) => {
      const peers = meet(pair);
      const ia = await pair.openPassiveAgain?.();
      assert.ok(ia !== undefined);
      const pz = ia.createPz();
      const psp = ia.createPsp({ connQual: CONN_QUAL + 1 });
      const ep = ia.createEndpoint({ pz });
      psp.requests$.subscribe(({ cr }) => cr.accept(ep));
      passiveListens(peers);
      ask(peers, CONN_QUAL);
      (await peers.passive.request()).handoff(CONN_QUAL + 1);
      await peers.active.expect('ESTABLISHED');
      await ia.close();
    },
    ['second-adapter'],
  );
}

function passiveListens({ passive }: Peers): void {
  passive.ia.createPsp({ connQual: CONN_QUAL, evd: passive.evd });
}

function querying(claim: Claim): void {
  claim('a request tells everything there is to know, until it is answered', async (pair) => {
    const peers = meet(pair);
    const { passive } = peers;
    const psp = passive.ia.createPsp({ connQual: CONN_QUAL, evd: passive.evd });
    ask(peers, CONN_QUAL);
    const cr = await passive.request();
    const query = cr.query();
    assert.equal(query.sp, psp);
    assert.equal(query.connQual, CONN_QUAL);
    assert.equal(query.localAddress, pair.passiveAddress);
    assert.equal(query.remoteAddress, pair.active.address);
    assert.ok(query.remotePort >= 0 && query.remotePort <= 65535);
    assert.equal(query.privateData.length, pair.privateData === 'exact' ? 3 : 56);
    assert.equal(query.localEp, undefined);
    assert.equal(cr.state, 'PENDING');
    cr.reject();
    assert.equal(cr.state, 'REJECTED');
    refuses(() => cr.query(), 'DAT_INVALID_HANDLE_CR');
  });

  claim('a freed PSP is PENDING until its requests are answered', async (pair) => {
    const peers = meet(pair);
    const { passive } = peers;
    const psp = passive.ia.createPsp({ connQual: CONN_QUAL, evd: passive.evd });
    assert.equal(psp.state, 'LISTENING');
    ask(peers, CONN_QUAL);
    const cr = await passive.request();
    psp.free();
    assert.equal(psp.state, 'PENDING');
    const revived = passive.ia.createPsp({ connQual: CONN_QUAL, evd: passive.evd });
    cr.accept(passive.ep);
    assert.equal(psp.state, 'FREE');
    assert.equal(revived.state, 'LISTENING');
    await established(peers);
  });
}

function closingThem(claim: Claim): void {
  claim(
    'an adapter closes with requests unanswered: the peers are told',
    async (pair) => {
      const peers = meet(pair);
      const { active, passive } = peers;
      providerPsp(passive);
      passive.ia.createPsp({ connQual: CONN_QUAL + 1, evd: passive.evd });
      const { ep, evd } = passive;
      passive.ia.createRsp({ connQual: CONN_QUAL + 2, ep, evd });
      const eps = [active.ep, active.endpoint(), active.endpoint()];
      eps.forEach((from, i) => ask(peers, CONN_QUAL + i, from));
      const requests: DatEvent[] = [];
      for (let i = 0; i < 3; i++) requests.push(await passive.next());
      await passive.ia.close();
      await active.expect('NON_PEER_REJECTED', 'NON_PEER_REJECTED', 'NON_PEER_REJECTED');
      for (const event of requests) {
        assert.ok(event.type === 'connection-request' && event.cr.state === 'REJECTED');
      }
      assert.equal(ep.isFreed, true);
    },
    ['refusal-reasons'],
  );

  claim('an adapter closes with service points of every kind', async (pair) => {
    const { passive } = meet(pair);
    const { ia, ep } = passive;
    providerPsp(passive);
    const rsp = ia.createRsp({ connQual: CONN_QUAL + 1, ep });
    const csp = ia.createCsp({ address: { address: pair.passiveAddress, port: CONN_QUAL + 2 } });
    await assert.rejects(ia.close('graceful'), /are left/);
    await ia.close();
    assert.ok(rsp.isFreed && csp.isFreed && ep.isFreed);
  });

  claim(
    'a full EVD refuses the peer, and its RSP goes on listening',
    async (pair) => {
      const peers: Peers = meet(pair);
      const { active, passive } = peers;
      const evd = passive.ia.createEvd({ qlen: 1, streams: EvdFlags.CR | EvdFlags.SOFTWARE });
      evd.postSe('full');
      const { ia, ep } = passive;
      const rsp = ia.createRsp({ connQual: CONN_QUAL, ep, evd });
      ask(peers, CONN_QUAL);
      await active.expect('NON_PEER_REJECTED');
      assert.equal(rsp.state, 'LISTENING');
      assert.equal(ep.state, 'RESERVED');
      evd.dequeue();
      active.ep.reset();
      await succeed(peers, pair, evd);
    },
    ['refusal-reasons'],
  );
}

/** Waits for the active side's request on that EVD and accepts it. */
async function succeed(
  peers: Peers,
  pair: CompliancePair,
  evd: ReturnType<Peer['ia']['createEvd']>,
): Promise<void> {
  ask(peers, CONN_QUAL);
  await settle(pair);
  const event = (await evd.wait({ timeoutMs: PATIENCE_MS })).event;
  assert.ok(event.type === 'connection-request', textOf(event));
  event.cr.accept();
  await established(peers);
}
