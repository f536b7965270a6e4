// A second graceful disconnect changes nothing, whenever it comes and whichever side calls it.

import assert from 'node:assert/strict';
import { type DatEvent, type Ep, type Evd, openIa } from '../../../core/index.js';
import { Fabric, mock } from '../../../providers/mock/index.js';
import { drain, texts } from '../../support/fake-endpoints.js';

const SERVER = '192.0.2.2';
const STEP_US = 20;
const STEPS = 40;

interface Side {
  readonly ep: Ep;
  readonly evd: Evd;
}

async function connected(): Promise<{
  fabric: Fabric;
  sides: readonly [Side, Side];
  readonly end: () => Promise<void>;
}> {
  const fabric = new Fabric({ seed: 5, autoRun: false });
  const open = async (address: string): Promise<Side & { close(): Promise<void> }> => {
    const ia = await openIa(mock({ fabric, address }));
    const pz = ia.createPz();
    const evd = ia.createEvd({ qlen: 64 });
    const ep = ia.createEndpoint({ pz, recvEvd: evd, requestEvd: evd, connectEvd: evd });
    const lmr = ia.allocate(4096, { pz });
    for (let i = 0; i < 4; i++) ep.postRecv(lmr.segment(), i);
    return { ep, evd, close: () => ia.close() };
  };
  const [client, server] = [await open('192.0.2.1'), await open(SERVER)];
  server.ep.query().ia.createPsp({ connQual: 7, evd: server.evd });
  client.ep.connect({ address: SERVER, connQual: 7 });
  let request: DatEvent | undefined;
  await fabric.run({ until: () => (request = server.evd.dequeue()) !== undefined });
  assert.ok(request?.type === 'connection-request');
  request.cr.accept(server.ep);
  const isUp = ({ ep }: Side): boolean => ep.state === 'CONNECTED';
  await fabric.run({ until: () => isUp(client) && isUp(server) });
  for (const { evd } of [client, server]) drain(evd);
  const end = async (): Promise<void> => {
    const closed = Promise.all([client.close(), server.close()]);
    await fabric.run({ forUs: 10_000_000 });
    await closed;
  };
  return { fabric, sides: [client, server], end };
}

/** What both sides get to see, with a second call at that time, or without one. */
async function outcome(second?: {
  readonly atStep: number;
  readonly by: 0 | 1;
}): Promise<string[][]> {
  const { fabric, sides, end } = await connected();
  const [{ ep }] = sides;
  const { pz } = ep.query();
  const lmr = ep.query().ia.allocate(4096, { pz });
  for (let i = 0; i < 3; i++) ep.postSend(lmr.segment(), 10 + i);
  ep.disconnect('graceful');
  for (let step = 0; step < STEPS; step++) {
    if (second?.atStep === step) sides[second.by].ep.disconnect('graceful');
    await fabric.run({ forUs: STEP_US });
  }
  await fabric.run({ forUs: 1_000_000 });
  const seen = sides.map(({ evd }) => texts(drain(evd)).sort());
  assert.deepEqual(
    sides.map((side) => side.ep.state),
    ['DISCONNECTED', 'DISCONNECTED'],
  );
  for (const side of sides) side.ep.disconnect('graceful');
  assert.deepEqual(
    sides.flatMap(({ evd }) => drain(evd)),
    [],
  );
  for (const side of sides) side.ep.reset();
  await end();
  return seen;
}

describe('disconnect(graceful), again', () => {
  it('by the same side: requests finish, one event each side, at every moment', async () => {
    const once = await outcome();
    for (const seen of once) assert.equal(seen.filter((text) => text === 'DISCONNECTED').length, 1);
    const sent = once[0]?.filter((text) => / 1[0-2] SUCCESS$/.test(text));
    assert.equal(sent?.length, 3);
    for (let atStep = 0; atStep < STEPS; atStep += 3) {
      assert.deepEqual(await outcome({ atStep, by: 0 }), once, `at step ${atStep}`);
    }
  });

  it('by both sides: each ends once', async () => {
    for (let atStep = 0; atStep < STEPS; atStep += 5) {
      const seen = await outcome({ atStep, by: 1 });
      for (const side of seen) {
        assert.equal(side.filter((text) => text === 'DISCONNECTED').length, 1, `step ${atStep}`);
        assert.ok(!side.includes('BROKEN'));
      }
    }
  });
});
