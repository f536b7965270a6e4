import assert from 'node:assert/strict';
import { type EpAttributeOptions, type Ia, openIa } from '../../../core/index.js';
import { Fabric, mock } from '../../../providers/mock/index.js';
import { drain, texts } from '../../support/fake-endpoints.js';

const CLIENT = '192.0.2.1';
const SERVER = '192.0.2.2';
const STEP_US = 10_000;

interface World {
  readonly fabric: Fabric;
  readonly ias: readonly Ia[];
  readonly sides: readonly ReturnType<typeof side>[];
}

function side(ia: Ia, attributes: EpAttributeOptions) {
  const pz = ia.createPz();
  const evd = ia.createEvd({ qlen: 64 });
  const evds = { recvEvd: evd, requestEvd: evd, connectEvd: evd };
  return { ia, evd, ep: ia.createEndpoint({ pz, ...evds, attributes }) };
}

/** Connected in virtual time: the client first, then the server. */
async function connected(attributes: EpAttributeOptions = {}): Promise<World> {
  const fabric = new Fabric({ seed: 3, autoRun: false });
  const ias: Ia[] = [];
  for (const address of [CLIENT, SERVER]) ias.push(await openIa(mock({ fabric, address })));
  const [client, server] = ias.map((ia) => side(ia, attributes));
  assert.ok(client && server);
  server.ia.createPsp({ connQual: 7, evd: server.evd });
  client.ep.connect({ address: SERVER, connQual: 7 });
  await fabric.run({ forUs: 1_000_000 });
  const [request] = drain(server.evd);
  assert.ok(request?.type === 'connection-request');
  request.cr.accept(server.ep);
  await fabric.run({ forUs: 1_000_000 });
  for (const { evd } of [client, server]) assert.deepEqual(texts(drain(evd)), ['ESTABLISHED']);
  return { fabric, ias, sides: [client, server] };
}

async function close({ fabric, ias }: World): Promise<void> {
  const closed = Promise.all(ias.map((ia) => ia.close()));
  await fabric.run({ forUs: 60_000_000 });
  await closed;
}

/** Virtual seconds until a send to a peer that has gone silent ends in BROKEN. */
async function noticedAfterS(world: World, index: number): Promise<number> {
  const { fabric, sides } = world;
  const here = sides[index];
  assert.ok(here);
  fabric.partition([CLIENT], [SERVER]);
  here.ep.postSend([], 1);
  for (let us = 0; us < 60_000_000; us += STEP_US) {
    await fabric.run({ forUs: STEP_US });
    const seen = texts(drain(here.evd));
    if (seen.length === 0) continue;
    assert.deepEqual(seen, ['dto 1 TRANSPORT', 'BROKEN']);
    return us / 1e6;
  }
  throw new Error('never noticed');
}

describe('a peer that goes silent', () => {
  for (const [index, name, least, most] of [
    [0, 'connected', 5, 7.5],
    [1, 'accepted', 2.5, 7.5],
  ] as const) {
    it(`is noticed within ${most} s by the side that ${name}, by default`, async () => {
      const world = await connected();
      const seconds = await noticedAfterS(world, index);
      assert.ok(seconds >= least && seconds <= most, `${seconds} s`);
      await close(world);
    });
  }

  it('is noticed sooner where the attributes say so', async () => {
    const transport = { ackTimeout: 8, retryCount: 1 };
    const world = await connected({ transport });
    const seconds = await noticedAfterS(world, 1);
    assert.ok(seconds <= 0.05, `${seconds} s`);
    await close(world);
  });

  it('is not given up when it is silent for less than three seconds', async () => {
    const world = await connected();
    const { fabric, sides } = world;
    const [client, server] = sides;
    assert.ok(client && server);
    server.ep.postRecv([], 1);
    fabric.partition([CLIENT], [SERVER]);
    client.ep.postSend([], 2);
    await fabric.run({ forUs: 2_900_000 });
    fabric.heal();
    await fabric.run({ forUs: 3_000_000 });
    assert.deepEqual(texts(drain(client.evd)), ['dto 2 SUCCESS']);
    assert.deepEqual(texts(drain(server.evd)), ['dto 1 SUCCESS']);
    await close(world);
  });
});
