import assert from 'node:assert/strict';
import {
  type DatEvent,
  EventBatch,
  type Ep,
  type Evd,
  type Ia,
  openIa,
} from '../../../core/index.js';
import { Fabric, mock } from '../../../providers/mock/index.js';
import { drain, texts } from '../../support/fake-endpoints.js';

const CLIENT = '192.0.2.1';
const SERVER = '192.0.2.2';
const STEP_US = 100_000;
type Name = 'recvEvd' | 'requestEvd' | 'connectEvd';

interface Side {
  readonly ia: Ia;
  readonly ep: Ep;
  readonly evds: Readonly<Record<Name, Evd>>;
}

/** The only thing that is asked of the endpoint: has it noticed that the connection is broken? */
type Watcher = (side: Side) => () => boolean;

/** Nothing here takes an event of the connect EVD but where that is the way to look. */
const WATCHERS: Readonly<Record<string, Watcher>> = {
  'ep.state':
    ({ ep }) =>
    () =>
      ep.state === 'DISCONNECTED',
  'ep.query()':
    ({ ep }) =>
    () =>
      ep.query().state === 'DISCONNECTED',
  'ep.getStatus()':
    ({ ep }) =>
    () =>
      ep.getStatus().state === 'DISCONNECTED',
  state$: ({ ep }) => {
    const states: string[] = [];
    ep.state$.subscribe((state) => states.push(state));
    return () => states.at(-1) === 'DISCONNECTED';
  },
  'connectEvd.dequeue()': ({ evds }) => polled(() => evds.connectEvd.dequeue()),
  'connectEvd.dequeueInto()': ({ evds }) => {
    const batch = new EventBatch(4);
    return polled(() => (evds.connectEvd.dequeueInto(batch) > 0 ? batch.events[0] : undefined));
  },
  'connectEvd.dequeue(), spinning': ({ evds }) => {
    evds.connectEvd.setPolling('spin');
    return polled(() => {
      for (let polls = 0; polls < 100; polls++) {
        const event = evds.connectEvd.dequeue();
        if (event !== undefined) return event;
      }
      return undefined;
    });
  },
  'connectEvd.query()':
    ({ evds }) =>
    () =>
      evds.connectEvd.query().pending > 0,
  'connectEvd.wait({ timeoutMs: 0 })': ({ evds }) => {
    let event: DatEvent | undefined;
    return () => {
      evds.connectEvd.wait({ timeoutMs: 0 }).then(
        (result) => (event = result.event),
        () => undefined,
      );
      return event !== undefined && texts([event])[0] === 'BROKEN';
    };
  },
  'connectEvd.wait()': ({ evds }) => {
    let event: DatEvent | undefined;
    void evds.connectEvd.wait().then((result) => (event = result.event));
    return () => event !== undefined && texts([event])[0] === 'BROKEN';
  },
  'an upcall of connectEvd': ({ evds }) => {
    const seen: DatEvent[] = [];
    evds.connectEvd.modifyUpcall('ONE', (event) => void seen.push(event));
    return () => texts(seen)[0] === 'BROKEN';
  },
  'recvEvd.dequeue()': (side) => untilState(side, () => void side.evds.recvEvd.dequeue()),
  'recvEvd.query()': (side) => untilState(side, () => void side.evds.recvEvd.query()),
  'requestEvd.dequeue()': (side) => untilState(side, () => void side.evds.requestEvd.dequeue()),
  'a waiter on recvEvd': (side) => {
    side.evds.recvEvd.wait().catch(() => undefined);
    return untilState(side, () => undefined);
  },
};

function polled(poll: () => DatEvent | undefined): () => boolean {
  return () => {
    const event = poll();
    return event !== undefined && texts([event])[0] === 'BROKEN';
  };
}

/** The record of transitions tells, and looks at nothing. */
function untilState({ ep }: Side, poll: () => void): () => boolean {
  return () => {
    poll();
    return ep.flightRecord().some((line) => line.includes('-> DISCONNECTED'));
  };
}

/** What is the matter. */
const FAILURES: Readonly<Record<string, (fabric: Fabric, side: Side) => void>> = {
  'a silent peer': (fabric, { ep }) => {
    fabric.partition([CLIENT], [SERVER]);
    ep.postSend([], 1);
  },
  'a peer without a receive': (_, { ep }) => void ep.postSend([], 1),
};

/** Which events share an EVD. */
const SHARINGS: Readonly<Record<string, Readonly<Record<Name, number>>>> = {
  'three EVDs': { recvEvd: 0, requestEvd: 1, connectEvd: 2 },
  'completions together': { recvEvd: 0, requestEvd: 0, connectEvd: 1 },
  'one EVD': { recvEvd: 0, requestEvd: 0, connectEvd: 0 },
};

function side(ia: Ia, sharing: Readonly<Record<Name, number>>): Side {
  const made = [0, 1, 2].map(() => ia.createEvd({ qlen: 32 }));
  const evd = (name: Name): Evd => made[sharing[name]]!;
  const evds = {
    recvEvd: evd('recvEvd'),
    requestEvd: evd('requestEvd'),
    connectEvd: evd('connectEvd'),
  };
  const transport = { ackTimeout: 8, retryCount: 1, rnrRetryCount: 1 };
  const ep = ia.createEndpoint({ pz: ia.createPz(), ...evds, attributes: { transport } });
  return { ia, ep, evds };
}

async function noticed(sharing: string, failure: string, watcher: string): Promise<boolean> {
  const fabric = new Fabric({ seed: 3, autoRun: false });
  const ias: Ia[] = [];
  for (const address of [CLIENT, SERVER]) ias.push(await openIa(mock({ fabric, address })));
  const [client, server] = ias.map((ia) => side(ia, SHARINGS[sharing]!));
  assert.ok(client && server);
  const psp = server.ia.createPsp({ connQual: 7 });
  psp.requests$.subscribe(({ cr }) => cr.accept(server.ep));
  client.ep.connect({ address: SERVER, connQual: 7 });
  await fabric.run({ forUs: 1_000_000 });
  assert.deepEqual(texts(drain(client.evds.connectEvd)), ['ESTABLISHED']);
  const look = WATCHERS[watcher]!(client);
  FAILURES[failure]!(fabric, client);
  let found = false;
  for (let steps = 0; steps < 20 && !found; steps++) {
    await fabric.run({ forUs: STEP_US });
    found = look();
  }
  fabric.heal();
  const closed = Promise.all(ias.map((ia) => ia.close()));
  await fabric.run({ forUs: 60_000_000 });
  await closed;
  return found;
}

/** On one EVD the failed completion stands in front of BROKEN: a single look shows that only. */
const NEEDS_OWN_EVD = /^connectEvd\.(wait|dequeueInto)|^an upcall/;

describe('a connection that breaks is noticed by the only one who looks', () => {
  for (const failure of Object.keys(FAILURES)) {
    for (const sharing of Object.keys(SHARINGS)) {
      it(`${failure}, ${sharing}`, async () => {
        const missed: string[] = [];
        for (const watcher of Object.keys(WATCHERS)) {
          if (sharing === 'one EVD' && NEEDS_OWN_EVD.test(watcher)) continue;
          if (!(await noticed(sharing, failure, watcher))) missed.push(watcher);
        }
        assert.deepEqual(missed, []);
      });
    }
  }

  it('a poller of one connect EVD notices the failure of each of many endpoints', async () => {
    const fabric = new Fabric({ seed: 3, autoRun: false });
    const ias: Ia[] = [];
    for (const address of [CLIENT, SERVER]) ias.push(await openIa(mock({ fabric, address })));
    const [client, server] = ias;
    assert.ok(client && server);
    const zones = { client: client.createPz(), server: server.createPz() };
    const psp = server.createPsp({ connQual: 7 });
    psp.requests$.subscribe(({ cr }) => cr.accept(server.createEndpoint({ pz: zones.server })));
    const connectEvd = client.createEvd({ qlen: 128 });
    const attributes = { transport: { ackTimeout: 8, retryCount: 1 } };
    const eps = Array.from({ length: 40 }, () =>
      client.createEndpoint({ pz: zones.client, connectEvd, attributes }),
    );
    for (const ep of eps) ep.connect({ address: SERVER, connQual: 7 });
    await fabric.run({ forUs: 5_000_000 });
    assert.equal(drain(connectEvd).length, eps.length);
    fabric.partition([CLIENT], [SERVER]);
    for (const ep of eps) ep.postSend([], 1);
    await fabric.run({ forUs: 5_000_000 });
    const broken: string[] = [];
    for (let polls = 0; polls < 10; polls++) {
      broken.push(...texts(drain(connectEvd)));
      await fabric.run({ forUs: STEP_US });
    }
    assert.deepEqual(
      broken,
      eps.map(() => 'BROKEN'),
    );
    fabric.heal();
    const closed = Promise.all(ias.map((ia) => ia.close()));
    await fabric.run({ forUs: 60_000_000 });
    await closed;
  });
});
