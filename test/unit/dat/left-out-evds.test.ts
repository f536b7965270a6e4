import assert from 'node:assert/strict';
import { DatDto, type DatEvent, type Ep, type Evd, type Ia, openIa } from '../../../core/index.js';
import { Fabric, mock } from '../../../providers/mock/index.js';
import { drain } from '../../support/fake-endpoints.js';

const CLIENT = '192.0.2.1';
const SERVER = '192.0.2.2';
const DTOS = 4;
/** More of each than any queue holds. */
const MESSAGES = 5 * DTOS;
const NAMES = ['recvEvd', 'requestEvd', 'connectEvd'] as const;
type Name = (typeof NAMES)[number];
type Given = Readonly<Record<Name, boolean>>;

/** Where the events of each kind go, by what was given. */
interface Arrivals {
  readonly completions$: DatEvent[];
  readonly connection$: DatEvent[];
  readonly evds: Partial<Record<Name, Evd>>;
}

const attributes = { maxRecvDtos: DTOS, maxRequestDtos: DTOS } as const;

function subscribe(ep: Ep, given: Given, arrivals: Arrivals): void {
  const refused = { subtype: 'DAT_INVALID_STATE_EVD_IN_USE' };
  if (given.recvEvd && given.requestEvd) assert.throws(() => ep.completions$, refused);
  else ep.completions$.subscribe((event) => arrivals.completions$.push(event));
  if (given.connectEvd) assert.throws(() => ep.connection$, refused);
  else ep.connection$.subscribe((event) => arrivals.connection$.push(event));
}

function endpoint(ia: Ia, given: Given): { ep: Ep; arrivals: Arrivals } {
  const evds: Partial<Record<Name, Evd>> = {};
  for (const name of NAMES) if (given[name]) evds[name] = ia.createEvd({ qlen: 4 * MESSAGES });
  const ep = ia.createEndpoint({ pz: ia.createPz(), ...evds, attributes });
  const arrivals: Arrivals = { completions$: [], connection$: [], evds };
  subscribe(ep, given, arrivals);
  return { ep, arrivals };
}

/** Cookies by the kind of the event. */
function cookies(events: readonly DatEvent[]): { receives: number[]; sends: number[] } {
  const found: { receives: number[]; sends: number[] } = { receives: [], sends: [] };
  for (const event of events) {
    assert.equal(event.type, 'dto');
    if (event.type !== 'dto') continue;
    const isReceive = event.operation === DatDto.RECEIVE;
    (isReceive ? found.receives : found.sends).push(event.cookie);
  }
  return found;
}

function nameOf(given: Given): string {
  return NAMES.filter((name) => given[name]).join(', ') || 'none';
}

function combinations(names: readonly Name[]): Given[] {
  const none = { recvEvd: false, requestEvd: false, connectEvd: false };
  return Array.from({ length: 2 ** names.length }, (_, bits) =>
    names.reduce((given, name, at) => ({ ...given, [name]: ((bits >> at) & 1) === 1 }), none),
  );
}

function checkAll(given: Given, arrivals: Arrivals): void {
  const { completions$, evds } = arrivals;
  const all = Array.from({ length: MESSAGES }, (_, i) => i);
  const streamed = cookies(completions$);
  const of = (name: Name): DatEvent[] => (evds[name] === undefined ? [] : drain(evds[name]));
  const received = cookies(of('recvEvd'));
  const sent = cookies(of('requestEvd'));
  assert.deepEqual((given.recvEvd ? received : streamed).receives, all);
  assert.deepEqual((given.requestEvd ? sent : streamed).sends, all);
  const elsewhere = [received.sends, sent.receives];
  if (given.recvEvd) elsewhere.push(streamed.receives);
  if (given.requestEvd) elsewhere.push(streamed.sends);
  assert.deepEqual(elsewhere.flat(), []);
}

describe('endpoints made without some of their EVDs', () => {
  for (const given of combinations(NAMES)) {
    it(`given ${nameOf(given)}: every event comes, through the EVD or the stream`, async () => {
      const fabric = new Fabric({ seed: 2, autoRun: false });
      const ias: Ia[] = [];
      for (const address of [CLIENT, SERVER]) ias.push(await openIa(mock({ fabric, address })));
      const [client, server] = ias.map((ia) => endpoint(ia, given));
      assert.ok(client && server && ias[1]);
      ias[1].createPsp({ connQual: 7 }).requests$.subscribe(({ cr }) => cr.accept(server.ep));
      client.ep.connect({ address: SERVER, connQual: 7 });
      await fabric.run({ forUs: 1_000_000 });
      for (let i = 0; i < MESSAGES; i++) {
        for (const { ep } of [client, server]) ep.postRecv([], i);
        await fabric.run({ forUs: 10_000 });
        for (const { ep } of [client, server]) ep.postSend([], i);
        await fabric.run({ forUs: 10_000 });
      }
      for (const { ep, arrivals } of [client, server]) {
        assert.equal(ep.state, 'CONNECTED');
        checkAll(given, arrivals);
        const { connectEvd } = arrivals.evds;
        const connection = connectEvd ? drain(connectEvd) : arrivals.connection$;
        assert.deepEqual(
          connection.map(({ type }) => type),
          ['connection'],
        );
      }
      const closed = Promise.all(ias.map((ia) => ia.close()));
      await fabric.run({ forUs: 10_000_000 });
      await closed;
    });
  }

  for (const given of combinations(['recvEvd', 'requestEvd'])) {
    it(`for datagrams, given ${nameOf(given)}: the same`, async () => {
      const fabric = new Fabric({ seed: 2, autoRun: false });
      const ia = await openIa(mock({ fabric, address: CLIENT }));
      const evd = (name: Name): Partial<Record<Name, Evd>> =>
        given[name] ? { [name]: ia.createEvd({ qlen: 64 }) } : {};
      const evds = { ...evd('recvEvd'), ...evd('requestEvd') };
      const pz = ia.createPz();
      const lmr = ia.allocate(4096, { pz });
      const ep = ia.createUdEndpoint({ pz, ...evds });
      const streamed: number[] = [];
      if (given.recvEvd && given.requestEvd) assert.throws(() => ep.completions$);
      else ep.completions$.subscribe(({ operation }) => streamed.push(operation));
      const to = ep.createAddressHandle({ address: CLIENT, qpn: ep.qpn });
      ep.postRecv(lmr.segment(0, 100), 1);
      ep.postSendUd(lmr.segment(200, 5), to, 2);
      await fabric.run({ forUs: 10_000 });
      const operations = (taker: Evd | undefined): number[] =>
        taker
          ? drain(taker).map((event) => (event.type === 'datagram' ? event.operation : -1))
          : [];
      const all = [...streamed, ...operations(evds.recvEvd), ...operations(evds.requestEvd)];
      assert.deepEqual(all.sort(), [DatDto.SEND_UD, DatDto.RECV_UD].sort());
      const closed = ia.close();
      await fabric.run({ forUs: 10_000_000 });
      await closed;
    });
  }

  it('EVDs that are given later take over, and the rest stays in the stream', async () => {
    const fabric = new Fabric({ seed: 2, autoRun: true });
    const ia = await openIa(mock({ fabric, address: CLIENT }));
    const ep = ia.createEndpoint({ pz: ia.createPz() });
    const [recvEvd, requestEvd] = [ia.createEvd({ qlen: 8 }), ia.createEvd({ qlen: 8 })];
    ep.modify({ recvEvd });
    assert.equal(ep.completions$, ep.query().requestEvd.events$);
    ep.modify({ requestEvd });
    assert.throws(() => ep.completions$, { code: 'DAT_INVALID_STATE' });
    await ia.close();
  });
});
