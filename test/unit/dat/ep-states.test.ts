import assert from 'node:assert/strict';
import {
  DAT_SUBTYPES,
  DatError,
  type Ep,
  EP_STATES,
  type EpCall,
  EpState,
  type EpStateName,
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

/** Ways into the states that an endpoint can be brought to. */
const WAYS: Partial<Record<EpStateName, () => Promise<Bench>>> = {
  UNCONNECTED: () => unconnected(),
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

const CALLS: Readonly<Record<EpCall, (ep: Ep, bench: Bench) => void>> = {
  postReceive: (ep, { lmr }) => ep.postRecv(lmr.segment(), 1),
  postRequest: (ep, { lmr }) => ep.postSend(lmr.segment(), 1),
  connect: (ep) => ep.connect({ address: '192.0.2.2', connQual: 7 }),
  accept: (ep, bench) => {
    bench.ia.createPsp({ connQual: 9, evd: bench.evd });
    bench.cm.request(9);
    bench.world.pump();
    const request = drain(bench.evd).find((event) => event.type === 'connection-request');
    assert.ok(request?.type === 'connection-request');
    request.cr.accept(ep);
  },
  disconnectGraceful: (ep) => ep.disconnect('graceful'),
  disconnectAbrupt: (ep) => ep.disconnect('abrupt'),
  reset: (ep) => ep.reset(),
  free: (ep) => ep.free(),
};

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
    for (const [name, call] of Object.entries(CALLS)) {
      const legality = calls[name as EpCall];
      it(`${state}: ${name} is ${legality}`, async () => {
        const bench = await way();
        const { ep, device, evd } = bench;
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
