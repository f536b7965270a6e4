/** Endpoint states: the legal calls, and the effect of a post, in each. */
import assert from 'node:assert/strict';
import { EP_STATES, type EpCall, type EpStateName, PspFlags } from 'dapl';
import { group } from '../behaviour.js';
import type { CompliancePair } from '../fixture.js';
import { ask, CONN_QUAL, connected, meet, type Peer, refuses, waiting } from '../peer.js';

/** Returns a peer whose endpoint is in the state. */
type Reach = (pair: CompliancePair) => Promise<Peer>;

/** A way to reach each state. */
const REACH: Readonly<Record<EpStateName, Reach>> = {
  UNCONNECTED: async (pair) => meet(pair).active,
  RESERVED: async (pair) => {
    const { active } = meet(pair);
    active.ia.createRsp({ connQual: CONN_QUAL, ep: active.ep });
    return active;
  },
  PASSIVE_CONNECTION_PENDING: async (pair) => {
    const { active, passive } = meet(pair);
    passive.ia.createRsp({ connQual: CONN_QUAL, ep: passive.ep, evd: passive.evd });
    active.ep.connect({ address: pair.passiveAddress, connQual: CONN_QUAL });
    await passive.request();
    return passive;
  },
  TENTATIVE_CONNECTION_PENDING: async (pair) => {
    const { active, passive } = meet(pair);
    const { ia, pz, evd } = passive;
    const endpoint = { pz, recvEvd: evd, requestEvd: evd, connectEvd: evd };
    ia.createPsp({ connQual: CONN_QUAL, evd, flags: PspFlags.PROVIDER, endpoint });
    active.ep.connect({ address: pair.passiveAddress, connQual: CONN_QUAL });
    const { ep } = await passive.request();
    return Object.assign(Object.create(passive) as Peer, { ep });
  },
  ACTIVE_CONNECTION_PENDING: async (pair) => {
    const peers = meet(pair);
    await ask(peers);
    return peers.active;
  },
  COMPLETION_PENDING: async (pair) => {
    const peers = meet(pair);
    const cr = await ask(peers);
    cr.accept(peers.passive.ep);
    return peers.passive;
  },
  CONNECTED: async (pair) => (await connected(pair)).active,
  DISCONNECT_PENDING: async (pair) => {
    const { active } = await connected(pair);
    active.ep.disconnect('graceful');
    return active;
  },
  DISCONNECTED: async (pair) => {
    const { active } = await connected(pair);
    active.ep.disconnect();
    await active.expect('DISCONNECTED');
    return active;
  },
};

type Call = (peer: Peer, pair: CompliancePair) => void;

/** Calls of the table. `accept` is covered by the behaviours of service points. */
const CALLS: Readonly<Record<Exclude<EpCall, 'accept' | 'bindRmr'>, Call>> = {
  postReceive: ({ ep }) => ep.postRecv([], 1),
  postRequest: ({ ep }) => ep.postSend([], 2),
  connect: ({ ep }, pair) => ep.connect({ address: pair.passiveAddress, connQual: CONN_QUAL }),
  reserve: ({ ia, ep }) => void ia.createRsp({ connQual: CONN_QUAL + 1, ep }),
  disconnectGraceful: ({ ep }) => ep.disconnect('graceful'),
  disconnectAbrupt: ({ ep }) => ep.disconnect('abrupt'),
  reset: ({ ep }) => ep.reset(),
  free: ({ ep }) => ep.free(),
  modifyPz: ({ ep, pz }) => ep.modify({ pz }),
  modifyAttributes: ({ ep }) => ep.modify({ attributes: { maxRecvDtos: 20 } }),
  modifyTransport: ({ ep }) => ep.modify({ attributes: { transport: { retryCount: 5 } } }),
  query: ({ ep }) => void [ep.query(), ep.getStatus(), ep.recvQuery(), ep.counters()],
};
const bind: Call = ({ ia, ep, pz, lmr }) => void ia.createRmr(pz).bind(lmr.segment(), ep);

export const states = group('Endpoint states', (claim) => {
  for (const [name, reach] of Object.entries(REACH)) {
    const state = name as EpStateName;
    const { calls, subtype } = EP_STATES[state];
    const all = Object.entries(CALLS) as [keyof typeof CALLS, Call][];
    const illegal = all.filter(([call]) => calls[call] === 'illegal');
    const list = illegal.map(([call]) => call).join(', ');
    if (illegal.length > 0) {
      claim(`${state} refuses ${list}, and stays as it is`, async (pair) => {
        const peer = await reach(pair);
        assert.equal(peer.ep.state, state);
        for (const [, call] of illegal) refuses(() => call(peer, pair), subtype);
        assert.equal(peer.ep.state, state);
        assert.equal(peer.ep.isFreed, false);
      });
    }
    for (const [call, run] of all) {
      if (calls[call] === 'illegal') continue;
      claim(`${state} takes ${call}`, async (pair) => {
        const peer = await reach(pair);
        assert.equal(peer.ep.state, state);
        run(peer, pair);
      });
    }
    claim(
      `${state}: binding an RMR is ${calls.bindRmr}`,
      async (pair) => {
        const peer = await reach(pair);
        if (calls.bindRmr === 'illegal') refuses(() => bind(peer, pair), subtype);
        else bind(peer, pair);
        assert.equal(peer.ep.state, state);
      },
      ['memory-window'],
    );
  }

  claim('a receive posted in UNCONNECTED takes the first message', async (pair) => {
    const peers = meet(pair);
    const { active, passive } = peers;
    passive.ep.postRecv(passive.lmr.segment(0, 64), 1);
    (await ask(peers)).accept(passive.ep);
    await active.expect('ESTABLISHED');
    active.ep.postSend(active.lmr.segment(0, 64), 2);
    await passive.expect('ESTABLISHED', 'dto 1 SUCCESS');
  });

  claim('posts in DISCONNECTED are flushed at once', async (pair) => {
    const { active, passive } = await connected(pair);
    active.ep.disconnect();
    await active.expect('DISCONNECTED');
    active.ep.postRecv(active.lmr.segment(), 1);
    await active.expect('dto 1 FLUSHED');
    active.ep.postSend(active.lmr.segment(0, 8), 2);
    await active.expect('dto 2 FLUSHED');
    active.ep.postRdmaWrite(active.lmr.segment(0, 8), 3, passive.remote(), 1);
    await active.expect('dto 3 FLUSHED');
  });

  claim('reset keeps receives that have been flushed, and they hold no memory', async (pair) => {
    const { active } = await connected(pair);
    active.ep.disconnect();
    await active.expect('DISCONNECTED');
    active.ep.postRecv(active.lmr.segment(), 1);
    await waiting(pair, active, 1);
    active.ep.reset();
    active.lmr.free();
    active.ep.postRecv([], 2);
    await active.expect('dto 1 FLUSHED');
    assert.deepEqual(active.drain(), []);
  });

  claim(
    'a full queue is DAT_RESOURCE_CREDITS, and the endpoint goes on',
    async (pair) => {
      const attributes = { maxRecvDtos: 2, maxRequestDtos: 2 };
      const { active, passive } = await connected(pair, { attributes });
      passive.ep.postRecv([], 1);
      passive.ep.postRecv([], 2);
      refuses(() => passive.ep.postRecv([], 3), 'DAT_RESOURCE_CREDITS');
      active.ep.postSend([], 1);
      active.ep.postSend([], 2);
      refuses(() => active.ep.postSend([], 3), 'DAT_RESOURCE_CREDITS');
      await active.expect('dto 1 SUCCESS', 'dto 2 SUCCESS');
      await passive.expect('dto 1 SUCCESS', 'dto 2 SUCCESS');
      passive.ep.postRecv([], 4);
      active.ep.postSend([], 4);
      await active.expect('dto 4 SUCCESS');
    },
    ['latency'],
  );
});
