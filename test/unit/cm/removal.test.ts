/**
 * Forced removal of the device, with connections in every state: each endpoint hears of its end
 * once, the CM lets go of everything in bounded time, and closing works as ever.
 */
import assert from 'node:assert/strict';
import {
  type DatEvent,
  DatEventNumber,
  type Ep,
  type Evd,
  type Ia,
  MemPrivileges,
  openIa,
  type Pz,
} from '../../../core/index.js';
import { type Cm, cm as cmPlugin } from '../../../plugins/cm/index.js';
import { CM, definePlugin, nameOf } from '../../../core/spi/index.js';
import { Fabric, mock } from '../../../providers/mock/index.js';
import { settled } from '../../support/ud-pair.js';

const GONE = '192.0.2.1';
const PEER = '192.0.2.2';
const CONN_QUAL = 7471;

interface Side {
  readonly ia: Ia;
  readonly cm: Cm;
  readonly pz: Pz;
  readonly evd: Evd;
}

async function open(fabric: Fabric, address: string): Promise<Side> {
  let cm: Cm | undefined;
  const watched = definePlugin({ ...cmPlugin.meta, inject: { own: CM } }, ({ own }) => {
    cm = own as Cm;
    return own;
  });
  const ia = await openIa(mock({ fabric, address }), { modules: { cm: watched(undefined) } });
  const pz = ia.createPz();
  const evd = ia.createEvd({ qlen: 256 });
  return {
    ia,
    pz,
    evd,
    get cm() {
      assert.ok(cm);
      return cm;
    },
  };
}

function endpoint({ ia, pz, evd }: Side): Ep {
  return ia.createEndpoint({ pz, recvEvd: evd, requestEvd: evd, connectEvd: evd });
}

function take({ evd }: Side): DatEvent[] {
  const events: DatEvent[] = [];
  for (let event = evd.dequeue(); event !== undefined; event = evd.dequeue()) events.push(event);
  return events;
}

const connectionEvents = (events: readonly DatEvent[], ep: Ep): string[] =>
  events
    .filter((event) => event.type === 'connection' && event.ep === ep)
    .map((event) => nameOf(DatEventNumber, event.number));

/** Endpoints of the side that goes, in all states that a connection has there. */
async function everyState(fabric: Fabric, gone: Side, peer: Side): Promise<Record<string, Ep>> {
  const psp = gone.ia.createPsp({ connQual: CONN_QUAL, evd: gone.evd });
  const peerPsp = peer.ia.createPsp({ connQual: CONN_QUAL, evd: peer.evd });
  const pause = (us = 5_000): Promise<void> => fabric.run({ forUs: us });
  const requestTo = async (
    side: Side,
  ): Promise<Extract<DatEvent, { type: 'connection-request' }>> => {
    await pause();
    const event = take(side).find((one) => one.type === 'connection-request');
    assert.ok(event?.type === 'connection-request');
    return event;
  };
  const connectFrom = (side: Side, address: string): Ep => {
    const ep = endpoint(side);
    ep.connect({ address, connQual: CONN_QUAL });
    return ep;
  };

  const active = connectFrom(gone, PEER);
  (await requestTo(peer)).cr.accept(endpoint(peer));
  connectFrom(peer, GONE);
  const passive = endpoint(gone);
  (await requestTo(gone)).cr.accept(passive);
  const busy = connectFrom(gone, PEER);
  (await requestTo(peer)).cr.accept(endpoint(peer));
  await pause();
  take(gone);
  const { lmr } = { lmr: gone.ia.allocate(4096, { pz: gone.pz, privileges: MemPrivileges.ALL }) };
  active.postRecv(lmr.segment(0, 64), 1);

  // From here on the peer is silent, so that nothing comes to an end.
  fabric.partition([GONE], [PEER]);
  busy.postSend(lmr.segment(0, 64), 2);
  const leaving = busy;
  const connecting = connectFrom(gone, PEER);
  psp.free();
  peerPsp.free();
  await pause();
  return { active, passive, leaving, connecting };
}

describe('CM: the device is removed by force', () => {
  it('ends each connection once, wherever it was, and holds nothing afterwards', async () => {
    const fabric = new Fabric({ seed: 1, autoRun: false });
    const [gone, peer] = [await open(fabric, GONE), await open(fabric, PEER)];
    const eps = await everyState(fabric, gone, peer);
    take(gone);
    fabric.node(GONE)?.remove();
    await fabric.run({ forUs: 1_000_000 });
    const events = take(gone);
    for (const [name, ep] of Object.entries(eps)) {
      assert.deepEqual(connectionEvents(events, ep), ['BROKEN'], name);
      assert.equal(ep.state, 'DISCONNECTED', name);
    }
    // What was posted has come back, each once.
    const returned = events.filter((event) => event.type === 'dto').map((event) => event.cookie);
    assert.deepEqual(returned.sort(), [1, 2]);
    const async: string[] = [];
    for (let one = gone.ia.asyncEvd.dequeue(); one; one = gone.ia.asyncEvd.dequeue()) {
      async.push(nameOf(DatEventNumber, one.number));
    }
    assert.equal(async.filter((name) => name === 'ASYNC_IA_CATASTROPHIC').length, 1);
    // Retries and timewait are over in bounded time, though nothing can be sent.
    await fabric.run({ forUs: 60_000_000 });
    assert.ok(gone.cm.isIdle);
    assert.deepEqual(take(gone), []);
    await settled(fabric, gone.ia.close());
    await settled(fabric, peer.ia.close());
  });

  it('is closed at once, in the middle of it all', async () => {
    const fabric = new Fabric({ seed: 2, autoRun: false });
    const [gone, peer] = [await open(fabric, GONE), await open(fabric, PEER)];
    await everyState(fabric, gone, peer);
    fabric.node(GONE)?.remove();
    const begin = fabric.clock.now();
    await settled(fabric, gone.ia.close());
    assert.ok(fabric.clock.now() - begin < 3_000_000);
    assert.ok(gone.cm.isIdle);
    await settled(fabric, peer.ia.close());
  });

  it('refuses to begin anything on it with an event or an error, never with silence', async () => {
    const fabric = new Fabric({ seed: 3, autoRun: false });
    const [gone, peer] = [await open(fabric, GONE), await open(fabric, PEER)];
    fabric.node(GONE)?.remove();
    await fabric.run({ forUs: 1_000 });
    const ep = endpoint(gone);
    ep.connect({ address: PEER, connQual: CONN_QUAL });
    await fabric.run({ forUs: 120_000_000 });
    assert.deepEqual(connectionEvents(take(gone), ep), ['UNREACHABLE']);
    await settled(fabric, gone.ia.close());
    await settled(fabric, peer.ia.close());
  });
});
