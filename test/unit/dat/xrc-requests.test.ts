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
  type XrcInitiator,
} from '../../../core/index.js';
import type { ServiceOptions } from '../../../core/dat/endpoint/connect-options.js';
import { REJECT_REASON } from '../../../plugins/cm/provider.js';
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
  readonly initiator: XrcInitiator;
  readonly connect: (connQual: number) => void;
  readonly connectTo: (service: ServiceOptions) => void;
}

/** An initiator is about to ask. */
async function scene(): Promise<Scene> {
  const fabric = new Fabric({ seed: 1, autoRun: false });
  const client = await openIa(mock({ fabric, address: CLIENT }));
  const server = await openIa(mock({ fabric, address: SERVER }));
  const outcome = client.createEvd({ qlen: 16 });
  const requests = server.createEvd({ qlen: 16, streams: EvdFlags.CR });
  const own = await client.openXrcDomain();
  const initiator = own.createInitiator({
    pz: client.createPz(),
    requestEvd: outcome,
    connectEvd: outcome,
  });
  const connectTo = (service: ServiceOptions): void =>
    initiator.connect({ address: SERVER, ...service });
  const connect = (connQual: number): void => connectTo({ connQual });
  const domain = await server.openXrcDomain();
  return { fabric, server, client, domain, outcome, requests, initiator, connect, connectTo };
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
  it('come to a service point that was made for them, and a domain accepts', async () => {
    const here = await scene();
    const { server, domain, requests, connect, outcome } = here;
    const psp = server.createPsp({ connQual: 9, evd: requests, xrc: true });
    assert.equal(psp.query().xrc, true);
    connect(9);
    const event = await next(here, requests);
    assert.ok(event?.type === 'connection-request');
    assert.equal(event.cr.transport, 'xrc');
    const error = refused(() => event.cr.accept());
    assert.deepEqual([error.code, error.subtype], ['DAT_INVALID_PARAMETER', 'DAT_INVALID_ARG1']);
    assert.match(error.hint ?? '', /XRC domain/);
    domain.accept(event.cr);
    assert.equal((await next(here, outcome))?.number, DatEventNumber.ESTABLISHED);
  });

  for (const [name, service, reason] of [
    ['a port', { connQual: 9 }, REJECT_REASON.CONSUMER_REJECT],
    ['a service id', { serviceId: 9n }, REJECT_REASON.INVALID_TRANSPORT_SERVICE_TYPE],
  ] as const) {
    it(`the CM refuses what the service point of ${name} cannot accept, either way`, async () => {
      for (const xrc of [false, true]) {
        const here = await scene();
        const { server, client, requests, connectTo, outcome } = here;
        server.createPsp({ ...service, evd: requests, xrc });
        if (xrc) {
          const evds = { requestEvd: outcome, recvEvd: outcome, connectEvd: outcome };
          const ep = client.createEndpoint({ pz: client.createPz(), ...evds });
          ep.connect({ address: SERVER, ...service });
        } else connectTo(service);
        const event = await next(here, outcome);
        assert.ok(event?.type === 'connection');
        assert.equal(event.rejectReason, reason);
        assert.equal(requests.dequeue(), undefined);
      }
    });
  }

  it('are not handed off to a service point that cannot accept them', async () => {
    const here = await scene();
    const { server, domain, requests, connect, outcome } = here;
    server.createPsp({ connQual: 9, evd: requests, xrc: true });
    server.createPsp({ connQual: 10 });
    connect(9);
    const event = await next(here, requests);
    assert.ok(event?.type === 'connection-request');
    assert.equal(refused(() => event.cr.handoff(10)).code, 'DAT_INVALID_PARAMETER');
    domain.accept(event.cr);
    assert.equal((await next(here, outcome))?.number, DatEventNumber.ESTABLISHED);
  });

  it('have no endpoints made for them: PspFlags.PROVIDER with xrc is refused', async () => {
    const { server } = await scene();
    const endpoint = { pz: server.createPz() };
    for (const options of [
      { connQual: 9, flags: PspFlags.PROVIDER, endpoint, xrc: true },
      { connQual: 9, xrc: 'yes' as never },
    ]) {
      assert.equal(refused(() => server.createPsp(options)).code, 'DAT_INVALID_PARAMETER');
    }
    assert.equal(server.createPspAny({ xrc: true }).query().xrc, true);
  });

  it('a SEND to a queue that does not exist is refused as a request, with its causes', async () => {
    const here = await scene();
    const { server, domain, requests, connect, outcome, initiator } = here;
    server.createPsp({ connQual: 9, evd: requests, xrc: true });
    connect(9);
    const event = await next(here, requests);
    assert.ok(event?.type === 'connection-request');
    domain.accept(event.cr);
    assert.equal((await next(here, outcome))?.number, DatEventNumber.ESTABLISHED);
    initiator.toSrq(0x1234).postSend([], 1);
    const completion = await next(here, outcome);
    assert.ok(completion?.type === 'dto');
    const broken = await next(here, outcome);
    assert.ok(broken?.type === 'connection');
    assert.equal(broken.cause, 'REMOTE_REQUEST');
    assert.match(broken.reason ?? '', /no such XRC queue.*too small/);
  });

  it('leave no target behind when they are gone before they are answered', async () => {
    const here = await scene();
    const { client, server, domain, requests, connect, fabric } = here;
    server.createPsp({ connQual: 9, evd: requests, xrc: true });
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
    assert.equal((await next(here, outcome))?.number, DatEventNumber.PEER_REJECTED);
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
