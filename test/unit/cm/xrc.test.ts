/** The CM between an XRC initiator and a target (IBTA annex A14). */
import assert from 'node:assert/strict';
import { AsyncEventType, QpState, QpType, SpiError } from '../../../core/spi/index.js';
import { EXTENDED_TRANSPORT, TRANSPORT_SERVICE } from '../../../plugins/cm/wire/req.js';
import { REJECT_REASON } from '../../../plugins/cm/wire/rej.js';
import { CmPair, SERVICE, type Side, typesOf } from '../../support/cm-pair.js';

/** MAD header of 24 bytes in front of every CM message. */
const MAD_HEADER = 24;

/** RC, UC, RD; the extensions none, XRC and one that is none's. */
const TRANSPORTS = [
  [0, 0],
  [1, 0],
  [2, 0],
  [3, 0],
  [3, 1],
  [3, 2],
] as const;

async function established(pair: CmPair): Promise<{ active: Side; passive: Side }> {
  let passive: Side | undefined;
  const targetQp = pair.b.device.connectableQp(QpType.XRC_TGT);
  pair.listenXrc((request) => {
    assert.equal(request.transport, 'xrc');
    passive = { ...pair.accept(request, { qp: targetQp }), qp: targetQp };
  });
  const qp = pair.a.device.connectableQp(QpType.XRC_INI);
  const active = { ...pair.connect({ qp }), qp };
  await pair.world.runFor(100_000);
  assert.ok(passive);
  return { active, passive };
}

const einval = (message: RegExp) => (error: unknown) =>
  error instanceof SpiError && error.code === 'EINVAL' && message.test(error.message);

describe('CM for XRC', () => {
  it('REQ has the extended transport type, and says nothing of a responder', async () => {
    const pair = new CmPair();
    const { active } = await established(pair);
    const [req] = pair.bodies('REQ');
    assert.equal(req?.transportServiceType, TRANSPORT_SERVICE.extended);
    assert.equal(req.extendedTransportType, EXTENDED_TRANSPORT.xrc);
    assert.equal(req.localQpn, active.qp.qpn);
    const { responderResources, initiatorDepth, retryCount, rnrRetryCount, srq } = req;
    assert.deepEqual(
      { responderResources, initiatorDepth, retryCount, rnrRetryCount, srq },
      { responderResources: 0, initiatorDepth: 3, retryCount: 0, rnrRetryCount: 0, srq: 0 },
    );
    const bytes = pair.network.carried[0]!.data.subarray(MAD_HEADER);
    assert.equal((bytes[43]! >>> 1) & 3, 3, 'transport service type, byte 43 bits 5 and 6');
    assert.equal(bytes[51]! & 7, 1, 'extended transport type, byte 51 bits 5 to 7');
  });

  it('REP names the target in the EE context field, and says SRQ', async () => {
    const pair = new CmPair();
    const { passive } = await established(pair);
    const [rep] = pair.bodies('REP');
    assert.equal(rep?.localQpn, 0);
    assert.equal(rep.localEecn, passive.qp.qpn);
    assert.equal(rep.initiatorDepth, 0);
    assert.equal(rep.srq, 1);
    const bytes = pair.network.carried[1]!.data.subarray(MAD_HEADER);
    assert.deepEqual([...bytes.subarray(12, 15)], [0, 0, 0]);
    assert.equal((bytes[16]! << 16) | (bytes[17]! << 8) | bytes[18]!, passive.qp.qpn);
  });

  it('the initiator comes to RTS, the target stays in RTR', async () => {
    const pair = new CmPair();
    const { active, passive } = await established(pair);
    const ini = active.qp.query();
    const target = passive.qp.query();
    assert.equal(active.qp.state, QpState.RTS);
    assert.equal(ini.destinationQpn, passive.qp.qpn);
    assert.equal(ini.maxDestRdAtomic, undefined);
    assert.equal(ini.minRnrTimer, undefined);
    assert.deepEqual([ini.retryCount, ini.rnrRetryCount, ini.maxRdAtomic], [6, 5, 3]);
    assert.equal(passive.qp.state, QpState.RTR);
    assert.equal(target.destinationQpn, active.qp.qpn);
    assert.equal(target.receivePsn, ini.sendPsn);
    assert.equal(target.maxDestRdAtomic, 3);
    assert.equal(target.sendPsn, undefined);
    assert.deepEqual(typesOf(active.events), ['established']);
    assert.deepEqual(typesOf(passive.events), ['established']);
  });

  it('without RTU, the first request establishes the target', async () => {
    const pair = new CmPair();
    pair.tamper('RTU', 1, []);
    let passive: Side | undefined;
    const qp = pair.b.device.connectableQp(QpType.XRC_TGT);
    pair.listenXrc((request) => (passive = { ...pair.accept(request, { qp }), qp }));
    pair.connect({ qp: pair.a.device.connectableQp(QpType.XRC_INI) });
    await pair.world.runFor(50_000);
    assert.deepEqual(typesOf(passive!.events), []);
    qp.raise(AsyncEventType.COMM_EST);
    qp.raise(AsyncEventType.QP_LAST_WQE_REACHED);
    await pair.world.runFor(1000);
    assert.deepEqual(typesOf(passive!.events), ['established']);
    assert.deepEqual(qp.forwarded.slice(-1), [AsyncEventType.QP_LAST_WQE_REACHED]);
    assert.equal(qp.state, QpState.RTR);
  });

  for (const side of ['active', 'passive'] as const) {
    it(`the ${side} side disconnects: DREQ names the other’s queue pair`, async () => {
      const pair = new CmPair();
      const sides = await established(pair);
      const other = side === 'active' ? sides.passive : sides.active;
      sides[side].connection.disconnect();
      await pair.world.runFor(100_000);
      assert.equal(pair.bodies('DREQ')[0]?.remoteQpn, other.qp.qpn);
      assert.deepEqual(typesOf(other.events), ['established', 'disconnected']);
      assert.deepEqual([sides.active.qp.state, sides.passive.qp.state], [QpState.ERR, QpState.ERR]);
    });
  }

  it('a request is accepted with a queue pair of its transport only', async () => {
    const pair = new CmPair();
    pair.listenXrc((request) => {
      assert.throws(() => pair.accept(request), einval(/type RC: must be XRC_TGT/));
      const qp = pair.b.device.connectableQp(QpType.XRC_INI);
      assert.throws(() => pair.accept(request, { qp }), einval(/XRC_INI: must be XRC_TGT/));
      pair.accept(request, { qp: pair.b.device.connectableQp(QpType.XRC_TGT) });
    });
    const active = pair.connect({ qp: pair.a.device.connectableQp(QpType.XRC_INI) });
    await pair.world.runFor(100_000);
    assert.deepEqual(typesOf(active.events), ['established']);
  });

  it('a plain request is not accepted with a target', async () => {
    const pair = new CmPair();
    pair.listen((request) => {
      assert.equal(request.transport, 'rc');
      const qp = pair.b.device.connectableQp(QpType.XRC_TGT);
      assert.throws(() => pair.accept(request, { qp }), einval(/XRC_TGT: must be RC/));
      pair.accept(request);
    });
    const active = pair.connect();
    await pair.world.runFor(100_000);
    assert.deepEqual(typesOf(active.events), ['established']);
  });

  it('a target does not ask', () => {
    const pair = new CmPair();
    const qp = pair.a.device.connectableQp(QpType.XRC_TGT);
    assert.throws(() => pair.connect({ qp }), einval(/XRC_TGT: must be RC or XRC_INI/));
  });

  it('a device without XRC refuses the transport, as rdma_cm does (REJ 28)', async () => {
    const pair = new CmPair();
    pair.b.device.capabilities.delete('xrc');
    pair.listenXrc(() => assert.fail('nobody is asked'));
    const active = pair.connect({ qp: pair.a.device.connectableQp(QpType.XRC_INI) });
    await pair.world.runFor(100_000);
    assert.equal(pair.bodies('REJ')[0]?.reason, 28);
    assert.deepEqual(typesOf(active.events), ['rejected']);
  });

  for (const [name, serviceId, reason] of [
    ['a port of rdma_cm', SERVICE, REJECT_REASON.CONSUMER_REJECT],
    ['a service id of no port', 0x1234n, REJECT_REASON.INVALID_TRANSPORT_SERVICE_TYPE],
  ] as const) {
    it(`a transport that no listener takes is refused at ${name} (${reason})`, async () => {
      for (const listening of ['rc', 'xrc'] as const) {
        const pair = new CmPair();
        pair.connect({ serviceId });
        await pair.world.runFor(10_000);
        const onRequest = (): never => assert.fail('nobody is asked');
        pair.b.cm.listen({ serviceId, backlog: 1, transport: listening, onRequest });
        const [req] = pair.bodies('REQ');
        assert.ok(req);
        for (const [i, [service, extended]] of TRANSPORTS.entries()) {
          const own = listening === 'rc' ? service === 0 : service === 3 && extended === 1;
          if (own) continue;
          const fields = { transportServiceType: service, extendedTransportType: extended };
          const body = { ...req, ...fields, localCommId: 99 + i, localQpn: 77 + i };
          pair.inject(pair.b, { name: 'REQ', body });
          await pair.world.runFor(1000);
          assert.equal(pair.bodies('REJ').at(-1)?.remoteCommId, 99 + i);
          assert.equal(pair.bodies('REJ').at(-1)?.reason, reason);
        }
      }
    });
  }
});
