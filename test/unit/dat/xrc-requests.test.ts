import assert from 'node:assert/strict';
import {
  DatError,
  DatEventNumber,
  type Evd,
  EvdFlags,
  type Ia,
  openIa,
  PspFlags,
  type XrcDomain,
} from '../../../core/index.js';
import { Fabric, mock } from '../../../providers/mock/index.js';

const CLIENT = '192.0.2.1';
const SERVER = '192.0.2.2';

interface Scene {
  readonly fabric: Fabric;
  readonly server: Ia;
  readonly client: Ia;
  readonly domain: XrcDomain;
  /** Takes what comes to the initiator. */
  readonly outcome: Evd;
  /** Takes requests at the server. */
  readonly requests: Evd;
  readonly connect: (connQual: number) => void;
}

/** An initiator is about to ask. */
async function scene(): Promise<Scene> {
  const fabric = new Fabric({ seed: 1, autoRun: false });
  const client = await openIa(mock({ fabric, address: CLIENT }));
  const server = await openIa(mock({ fabric, address: SERVER }));
  const outcome = client.createEvd({ qlen: 16 });
  const requests = server.createEvd({ qlen: 16, streams: EvdFlags.CR });
  const initiator = client.openXrcDomain().createInitiator({
    pz: client.createPz(),
    requestEvd: outcome,
    connectEvd: outcome,
  });
  const connect = (connQual: number): void => initiator.connect({ address: SERVER, connQual });
  const domain = server.openXrcDomain();
  return { fabric, server, client, domain, outcome, requests, connect };
}

async function next({ fabric }: Scene, evd: Evd): Promise<ReturnType<Evd['dequeue']>> {
  let event: ReturnType<Evd['dequeue']>;
  await fabric.run({ until: () => (event = evd.dequeue()) !== undefined });
  return event;
}

function refused(call: () => unknown): DatError {
  try {
    call();
  } catch (error) {
    assert.ok(DatError.isDatError(error), String(error));
    return error;
  }
  return assert.fail('the call was taken');
}

describe('connection requests of XRC initiators', () => {
  it('get no endpoint made for them, and a domain accepts', async () => {
    const here = await scene();
    const { server, domain, requests, connect, outcome } = here;
    const pz = server.createPz();
    const endpoint = { pz };
    server.createPsp({ connQual: 9, evd: requests, flags: PspFlags.PROVIDER, endpoint });
    connect(9);
    const event = await next(here, requests);
    assert.ok(event?.type === 'connection-request');
    assert.equal(event.cr.transport, 'xrc');
    assert.equal(event.cr.ep, undefined);
    const error = refused(() => event.cr.accept());
    assert.deepEqual([error.code, error.subtype], ['DAT_INVALID_PARAMETER', 'DAT_INVALID_ARG1']);
    assert.match(error.hint ?? '', /XRC domain/);
    domain.accept(event.cr);
    assert.equal((await next(here, outcome))?.number, DatEventNumber.ESTABLISHED);
    assert.equal(pz.query().users, 0);
  });

  it('leave no target behind when they are gone before they are answered', async () => {
    const here = await scene();
    const { client, server, domain, requests, connect, fabric } = here;
    server.createPsp({ connQual: 9, evd: requests });
    connect(9);
    const event = await next(here, requests);
    assert.ok(event?.type === 'connection-request');
    const closed = client.close('abrupt');
    await fabric.run({ forUs: 1_000_000 });
    await closed;
    for (const owner of ['consumer', 'domain'] as const) {
      const error = refused(() => domain.accept(event.cr, { owner }));
      assert.equal(error.code, 'DAT_INVALID_STATE', error.message);
      assert.deepEqual(domain.targets, [], owner);
    }
    domain.close();
  });

  it('are refused by a reserved service point, whose endpoint goes on waiting', async () => {
    const here = await scene();
    const { server, requests, connect, outcome } = here;
    const ep = server.createEndpoint({ pz: server.createPz() });
    const rsp = server.createRsp({ connQual: 9, ep, evd: requests });
    connect(9);
    assert.equal((await next(here, outcome))?.number, DatEventNumber.NON_PEER_REJECTED);
    assert.deepEqual([ep.state, rsp.state], ['RESERVED', 'LISTENING']);
    rsp.free();
    ep.free();
  });

  it('targets: refuses attributes and numbers of the wrong type as parameters', async () => {
    const { domain } = await scene();
    for (const value of [undefined, null, 5, 'x', [], Symbol('s')] as never[]) {
      for (const call of [
        () => domain.createTarget(value),
        () => domain.modifyTarget(1, value),
        () => domain.modifyTarget(Symbol('s') as never, {}),
        () => domain.queryTarget([] as never),
      ]) {
        const error = refused(call);
        assert.equal(error.code, 'DAT_INVALID_PARAMETER', error.message);
      }
    }
  });
});
