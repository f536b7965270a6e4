import assert from 'node:assert/strict';
import { inspect } from 'node:util';
import {
  Csp,
  DatHandle,
  type HandleType,
  HandleTypeNumber,
  type Ia,
  MemPrivileges,
  PspFlags,
  Rsp,
} from '../../../core/index.js';
import { type Bench, connected, drain } from '../../support/fake-endpoints.js';
import { openFake } from '../../support/fake-provider.js';

interface Handle {
  readonly handleType: string;
  consumerContext: unknown;
  readonly id: number;
}

/** One object of each kind, in the order of DAT's numbers. */
function everything(bench: Bench): Readonly<Record<keyof typeof HandleTypeNumber, Handle>> {
  const { ia, pz, ep, evd, lmr, cm, world } = bench;
  const psp = ia.createPsp({ connQual: 8, evd });
  cm.request(8);
  world.pump();
  const request = drain(evd).find(({ type }) => type === 'connection-request');
  assert.ok(request?.type === 'connection-request');
  const evds = { recvEvd: evd, requestEvd: evd, connectEvd: evd };
  return {
    CR: request.cr,
    EP: ep,
    EVD: evd,
    IA: ia,
    LMR: lmr,
    PSP: psp,
    PZ: pz,
    RMR: ia.createRmr(pz),
    RSP: ia.createRsp({ connQual: 9, ep: ia.createEndpoint({ pz, ...evds }) }),
    CNO: ia.createCno(),
    SRQ: ia.createSrq({ pz, maxRecvDtos: 4 }),
    CSP: ia.createCsp({ address: '0.0.0.0:10' }),
  };
}

describe('objects', () => {
  it('know their kind, have a number and carry what the consumer attaches', async () => {
    const objects = Object.entries(everything(await connected()));
    assert.equal(objects.length, Object.keys(HandleTypeNumber).length);
    assert.equal(new Set(objects.map(([, object]) => object.id)).size, objects.length);
    for (const [i, [kind, object]] of objects.entries()) {
      assert.equal(object.handleType, kind);
      assert.equal(HandleTypeNumber[object.handleType as keyof typeof HandleTypeNumber], i);
      assert.equal(object.consumerContext, undefined);
      const mine = { kind };
      object.consumerContext = mine;
      assert.equal(object.consumerContext, mine);
    }
  });

  it('are shown with what matters, also when they are freed', async () => {
    const bench = await connected();
    const { RMR, RSP, SRQ, CSP, PZ, CR } = everything(bench);
    bench.lmr.segment();
    const shown = inspect([RMR, RSP, SRQ, CSP, PZ, CR]);
    assert.match(shown, /Rmr \{ id: \d+, scope: 'PZ', unbound \}/);
    assert.match(shown, /Rsp \{ id: \d+, connQual: 9, state: 'LISTENING' \}/);
    assert.match(shown, /Srq \{ id: \d+, state: 'OPERATIONAL', receives: 0\/4, endpoints: 0 \}/);
    assert.match(shown, /Csp \{ id: \d+, connQual: 10, state: 'LISTENING' \}/);
    assert.match(shown, /Pz \{ id: \d+, users: \d+ \}/);
    assert.match(shown, /Cr \{ id: \d+, remoteAddress: '192\.0\.2\.\d+', state: 'PENDING' \}/);
    const counts = /psps: 1, lmrs: 1, rmrs: 1, srqs: 1, rsps: 1, csps: 1, pzs: 1, evds: 4, cnos: 1/;
    assert.match(inspect(bench.ia), counts);
    await bench.ia.close();
    assert.match(inspect([RMR, SRQ]), /freed.*freed/s);
    assert.match(inspect(CSP), /state: 'FREE'/);
  });

  it('all end with their adapter, in order, each once', async () => {
    const bench = await connected();
    const objects = everything(bench);
    bench.ia.createPsp({
      connQual: 11,
      evd: bench.evd,
      flags: PspFlags.PROVIDER,
      endpoint: { pz: bench.pz },
    });
    await bench.ia.close();
    for (const object of Object.values(objects)) {
      assert.equal((object as unknown as DatHandle).isFreed, true, object.handleType);
    }
    const { ended } = bench.device;
    const order = ['cm', 'mad', 'qp', 'mw', 'srq', 'cq', 'mr', 'pd', 'device'];
    const places = order.map((name) => ended.lastIndexOf(name));
    assert.deepEqual(
      places,
      [...places].sort((a, b) => a - b),
      ended.join(', '),
    );
    assert.ok(!places.includes(-1), ended.join(', '));
    assert.equal(bench.cm.listeners.size, 0);
  });

  it('trace each call with names and symbolic values', async () => {
    const lines: string[] = [];
    const nothing = (): void => undefined;
    const debug = (message: string): void => void lines.push(message);
    const logger = {
      ...{ debug, info: nothing, warn: nothing, error: nothing, isDebugEnabled: () => true },
      child: () => logger,
    };
    const { ia, cm, world } = await openFake({ logger });
    const pz = ia.createPz();
    const lmr = ia.allocate(64, { pz });
    const ep = ia.createEndpoint({ pz });
    ep.connect({ address: '192.0.2.2', connQual: 7 });
    cm.connection.emit({ type: 'established', privateData: new Uint8Array(0) });
    world.pump();
    const srq = ia.createSrq({ pz, maxRecvDtos: 4 });
    srq.postRecv(lmr.segment(), 7);
    srq.setLowWatermark(2);
    const rmr = ia.createRmr(pz);
    const { REMOTE_READ } = MemPrivileges;
    rmr.bind(lmr.segment(0, 8), ep, { privileges: REMOTE_READ, cookie: 3 });
    const psp = ia.createPspAny();
    psp.free();
    const expected = [
      `ia.createSrq(ia=${ia.id}, maxRecvDtos=4)`,
      `srq.postRecv(srq=${srq.id}, segments=1, cookie=7)`,
      `srq.setLowWatermark(srq=${srq.id}, lowWatermark=2)`,
      `ia.createRmr(ia=${ia.id}, pz=${pz.id})`,
      `rmr.bind(rmr=${rmr.id}, ep=${ep.id}, lmr=${lmr.id}, lengthBytes=8, ` +
        'privileges=REMOTE_READ, cookie=3, flags=DEFAULT)',
      `psp.free(psp=${psp.id})`,
    ];
    assert.deepEqual(
      lines.filter((line) => expected.includes(line)),
      expected,
      lines.join('\n'),
    );
  });

  it('are refused to a graceful close, kind by kind', async () => {
    const make: Readonly<Partial<Record<HandleType, (ia: Ia) => unknown>>> = {
      PZ: (ia) => ia.createPz(),
      RMR: (ia) => ia.createRmr(ia.createPz()),
      SRQ: (ia) => ia.createSrq({ pz: ia.createPz(), maxRecvDtos: 1 }),
      PSP: (ia) => ia.createPspAny(),
      CSP: (ia) => ia.createCsp({ address: '0.0.0.0:10' }),
      EVD: (ia) => ia.createEvd({ qlen: 1 }),
    };
    for (const [kind, one] of Object.entries(make)) {
      const { ia } = await openFake();
      one(ia);
      await assert.rejects(ia.close('graceful'), /DAT_INVALID_STATE_IA_IN_USE/, kind);
      assert.equal(ia.isFreed, false);
      await ia.close();
    }
  });

  it('of the kinds that DAT adds are classes that a consumer can tell apart', async () => {
    const { RSP, CSP } = everything(await connected());
    assert.ok(RSP instanceof Rsp && CSP instanceof Csp);
    assert.ok(RSP instanceof DatHandle && CSP instanceof DatHandle);
  });
});
