import assert from 'node:assert/strict';
import {
  type Cr,
  DAT_SUBTYPES,
  DatError,
  type Ep,
  EP_STATES,
  type EpCall,
  EpState,
  type EpStateName,
  type Lmr,
  PspFlags,
  type RmrTriplet,
} from '../../../core/index.js';
import { QpState } from '../../../core/spi/index.js';
import {
  accepting,
  type Bench,
  connected,
  drain,
  texts,
  unconnected,
} from '../../support/fake-endpoints.js';

/** The request that holds an endpoint. */
const holders = new WeakMap<Ep, Cr>();

/** A request comes to a port. */
function requestAt({ cm, world, evd }: Bench, port: number): Cr {
  cm.request(port);
  world.pump();
  const event = drain(evd).find(({ type }) => type === 'connection-request');
  assert.ok(event?.type === 'connection-request');
  return event.cr;
}

/** Ways into the states that an endpoint can be brought to. */
const WAYS: Readonly<Record<EpStateName, () => Promise<Bench>>> = {
  UNCONNECTED: () => unconnected(),
  RESERVED: async () => {
    const bench = await unconnected();
    const { ia, ep, evd } = bench;
    ia.createRsp({ connQual: 8, ep, evd });
    return bench;
  },
  PASSIVE_CONNECTION_PENDING: async () => {
    const bench = await unconnected();
    const { ia, ep, evd } = bench;
    ia.createRsp({ connQual: 8, ep, evd });
    holders.set(ep, requestAt(bench, 8));
    return bench;
  },
  TENTATIVE_CONNECTION_PENDING: async () => {
    const bench = await unconnected();
    const { pz, evd } = bench;
    const evds = { recvEvd: evd, requestEvd: evd, connectEvd: evd };
    const flags = PspFlags.PROVIDER;
    bench.ia.createPsp({ connQual: 8, evd, flags, endpoint: { pz, ...evds } });
    const cr = requestAt(bench, 8);
    const { ep } = cr;
    assert.ok(ep !== undefined);
    holders.set(ep, cr);
    return { ...bench, ep };
  },
  ACTIVE_CONNECTION_PENDING: async () => {
    const bench = await unconnected();
    bench.ep.connect({ address: '192.0.2.2', connQual: 7 });
    return bench;
  },
  COMPLETION_PENDING: () => accepting(),
  CONNECTED: () => connected(),
  DISCONNECT_PENDING: async () => {
    const bench = await connected();
    bench.ep.postSend(bench.lmr.segment(), 77);
    bench.ep.disconnect('graceful');
    return bench;
  },
  DISCONNECTED: async () => {
    const bench = await connected();
    bench.ep.disconnect();
    drain(bench.evd);
    return bench;
  },
};

const CALLS: Readonly<Record<Exclude<EpCall, 'bindRmr'>, (ep: Ep, bench: Bench) => void>> = {
  postReceive: (ep, { lmr }) => ep.postRecv(lmr.segment(), 1),
  postRequest: (ep, { lmr }) => ep.postSend(lmr.segment(), 1),
  connect: (ep) => ep.connect({ address: '192.0.2.2', connQual: 7 }),
  accept: (ep, bench) => {
    const holder = holders.get(ep);
    if (holder !== undefined) {
      holder.accept();
      return;
    }
    bench.ia.createPsp({ connQual: 9, evd: bench.evd });
    requestAt(bench, 9).accept(ep);
  },
  disconnectGraceful: (ep) => ep.disconnect('graceful'),
  disconnectAbrupt: (ep) => ep.disconnect('abrupt'),
  reset: (ep) => ep.reset(),
  free: (ep) => ep.free(),
  reserve: (ep, { ia, evd }) => void ia.createRsp({ connQual: 10, ep, evd }),
  modifyPz: (ep, { ia }) => ep.modify({ pz: ia.createPz() }),
  modifyAttributes: (ep) => ep.modify({ attributes: { maxRecvDtos: 9 } }),
  modifyTransport: (ep) => ep.modify({ attributes: { transport: { retryCount: 3 } } }),
  query: (ep) => {
    ep.query();
    ep.getStatus();
    ep.recvQuery();
    ep.counters();
    ep.setWatermark(100);
  },
};

/** Other ways to make the same call. */
const VARIANTS: readonly (readonly [name: EpCall, call: (ep: Ep, bench: Bench) => void])[] = [
  ['connect', (ep) => ep.commonConnect('192.0.2.2:7')],
  ['connect', (ep) => ep.commonConnect({ address: '192.0.2.2', port: 7 })],
  ['postRequest', (ep, { lmr }) => ep.postSendWithImmediate(lmr.segment(), 1, 5)],
  ['postRequest', (ep, { lmr }) => ep.postSendWithInvalidate(lmr.segment(), 1, 5)],
  ['postRequest', (ep, { lmr }) => ep.postRdmaWrite(lmr.segment(), 1, REMOTE)],
  ['postRequest', (ep, { lmr }) => ep.postRdmaWriteWithImmediate(lmr.segment(), 1, REMOTE, 5)],
  ['postRequest', (ep, { lmr }) => ep.postRdmaRead(lmr.segment(), 1, REMOTE)],
  ['postRequest', (ep, { lmr }) => ep.postRdmaReadToRmr(sinkOf(lmr), 1, REMOTE)],
  ['postRequest', (ep, { lmr }) => ep.postFetchAdd(lmr.segment(0, 8), 1, REMOTE, 1n)],
  ['postRequest', (ep, { lmr }) => ep.postCompareSwap(lmr.segment(0, 8), 1, REMOTE, 1n, 2n)],
  ['modifyAttributes', (ep, { evd }) => ep.modify({ recvEvd: evd, requestEvd: evd })],
  ['modifyAttributes', (ep) => ep.modify({ attributes: { maxRdmaReadIn: 1, maxRdmaReadOut: 1 } })],
];

const REMOTE = { address: 64n, rmrContext: 1 };

function sinkOf({ address, rmrContext }: Lmr): RmrTriplet {
  return { address, rmrContext: rmrContext ?? 0, lengthBytes: 8 };
}

describe('endpoint states', () => {
  it("have DAT's numbers and a subtype each", () => {
    assert.equal(EpState.CONNECTED, 9);
    assert.equal(EpState.COMPLETION_PENDING, 12);
    for (const [name, { subtype }] of Object.entries(EP_STATES)) {
      assert.ok(name in EpState, name);
      assert.ok(subtype.slice(4) in DAT_SUBTYPES, subtype);
    }
  });

  for (const [state, way] of Object.entries(WAYS)) {
    const { calls, subtype } = EP_STATES[state as EpStateName];
    const all = [...(Object.entries(CALLS) as typeof VARIANTS), ...VARIANTS];
    for (const [i, [name, call]] of all.entries()) {
      const legality = calls[name];
      it(`${state}: ${name} is ${legality} (call ${i})`, async () => {
        const bench = await way();
        const { ep, device, evd } = bench;
        for (const capability of ['atomic', 'send-with-invalidate'] as const) {
          device.capabilities.add(capability);
        }
        const { qp } = device;
        assert.equal(ep.state, state);
        const before = { sends: qp.sendDoorbells, modifications: qp.modifications.length };
        if (legality === 'illegal') {
          assert.throws(
            () => call(ep, bench),
            (error) => DatError.isDatError(error) && error.subtype === subtype,
          );
          assert.equal(ep.state, state);
          assert.equal(qp.modifications.length, before.modifications);
          return;
        }
        call(ep, bench);
        if (legality === 'no-op') {
          assert.equal(ep.state, state);
          assert.equal(qp.modifications.length, before.modifications);
        } else if (legality === 'withheld') {
          assert.equal(qp.sendDoorbells, before.sends);
          assert.equal(qp.state, QpState.RTR);
        } else if (legality === 'flushed') {
          assert.deepEqual(texts(drain(evd)), ['dto 1 FLUSHED']);
        }
      });
    }
  }
});
