/** Service id resolution: asking, answering, and what is lost, repeated or made up on the way. */
import assert from 'node:assert/strict';
import { gidFromIp, ipFromGid, serviceIdOf, PortSpace } from '../../../core/spi/index.js';
import { text, textOf } from '../../support/cm-pair.js';
import { DATAGRAMS, SidrPair, UDP_QKEY, withQpn } from '../../support/sidr-pair.js';

const NONE = new Uint8Array(0);

async function assertNothingHeld(pair: SidrPair): Promise<void> {
  await pair.world.run();
  assert.ok(pair.a.cm.isIdle && pair.b.cm.isIdle);
  assert.equal(pair.world.activeTimers, 0);
}

describe('CM: resolving a datagram service', () => {
  it('is SIDR_REQ, SIDR_REP; QPN, Q_Key and private data come across', async () => {
    const pair = new SidrPair();
    pair.serve(withQpn(0x13));
    const { results, resolution } = pair.ask();
    assert.equal(resolution.state, 'SIDR_REQ_SENT');
    await pair.world.runFor(1_000);
    assert.deepEqual(pair.messages, ['SIDR_REQ', 'SIDR_REP']);
    const [result] = results;
    assert.deepEqual([result?.status, result?.qpn, result?.qkey], [0, 0x13, UDP_QKEY]);
    assert.equal(textOf(result?.privateData ?? NONE), 'me');
    assert.equal(result?.privateData.length, 136);
    const [inquiry] = pair.inquiries;
    assert.ok(inquiry);
    assert.equal(textOf(inquiry.privateData), 'who');
    assert.equal(inquiry.privateData.length, 180);
    assert.equal(ipFromGid(inquiry.remoteGid), '10.0.0.1');
    assert.equal(ipFromGid(inquiry.localGid), '10.0.0.2');
    assert.equal(inquiry.serviceId, DATAGRAMS);
    assert.ok(inquiry.remotePort >= 32_768);
    assert.equal(resolution.state, 'IDLE');
    await assertNothingHeld(pair);
    assert.equal(results.length, 1);
  });

  it('asks and answers as Linux does: header, P_Key, service id and ids echoed', async () => {
    const pair = new SidrPair();
    pair.serve(withQpn(0x13));
    pair.ask();
    await pair.world.runFor(1_000);
    const [req] = pair.bodies('SIDR_REQ');
    const [rep] = pair.bodies('SIDR_REP');
    assert.ok(req && rep);
    assert.equal(req.partitionKey, 0xffff);
    assert.equal(req.serviceId, 0x0000000001111c06n);
    assert.deepEqual([...req.privateData.subarray(0, 2)], [0, 0x40]);
    assert.equal(rep.requestId, req.requestId);
    assert.equal(rep.serviceId, req.serviceId);
    const tids = pair.network.carried.map(({ data }) => Buffer.from(data.subarray(8, 16)));
    assert.deepEqual(tids[1], tids[0]);
  });

  it('works over IPv6', async () => {
    const pair = new SidrPair({ ips: ['fd00::1', 'fd00::2'] });
    pair.serve(withQpn(7));
    const { results } = pair.ask();
    await pair.world.runFor(1_000);
    assert.equal(results[0]?.qpn, 7);
    assert.equal(pair.bodies('SIDR_REQ')[0]?.privateData[1], 0x60);
  });

  it('gives all 216 bytes to a service id that is not rdma_cm’s', async () => {
    const pair = new SidrPair();
    const serviceId = 0x1000_0000_0000_0001n;
    pair.serve(withQpn(7), { serviceId });
    pair.ask({ serviceId, privateData: text('x'.repeat(216)) });
    await pair.world.runFor(1_000);
    assert.equal(textOf(pair.inquiries[0]?.privateData ?? NONE), 'x'.repeat(216));
  });

  it('tells a refusal with its status and private data', async () => {
    const pair = new SidrPair();
    pair.serve((request) => request.reject({ status: 3, privateData: text('full') }));
    const { results } = pair.ask();
    await pair.world.runFor(1_000);
    assert.deepEqual([results[0]?.status, results[0]?.qpn], [3, 0]);
    assert.equal(textOf(results[0]?.privateData ?? NONE), 'full');
  });

  it('has status 1 where nobody serves, or only connections are served', async () => {
    const pair = new SidrPair();
    const nobody = pair.ask();
    const serviceId = serviceIdOf(PortSpace.TCP, 7471);
    pair.listen(() => assert.fail('it was no connection request'));
    const connections = pair.ask({ serviceId });
    await pair.world.runFor(1_000);
    assert.deepEqual([nobody.results[0]?.status, connections.results[0]?.status], [1, 1]);
    assert.equal(pair.b.cm.counters.requestsRejected, 2);
    await assertNothingHeld(pair);
  });

  it('has status 2 for a header that is not for us, or another partition', async () => {
    const pair = new SidrPair();
    pair.serve(() => assert.fail('handed out'));
    pair.network.fate = () => [];
    pair.ask();
    const [good] = pair.bodies('SIDR_REQ');
    assert.ok(good);
    const changed = (at: number, value: number): Uint8Array => {
      const privateData = good.privateData.slice();
      privateData[at] = value;
      return privateData;
    };
    const wrong = [
      { privateData: changed(0, 1) },
      { privateData: changed(1, 0x50) },
      { privateData: changed(1, 0x60) },
      { privateData: changed(35, 77) },
      { partitionKey: 0x8001 },
    ];
    for (const change of wrong)
      pair.inject(pair.b, { name: 'SIDR_REQ', body: { ...good, ...change } });
    await pair.world.runFor(1_000);
    assert.deepEqual(
      pair.bodies('SIDR_REP').map(({ status }) => status),
      [2, 2, 2, 2, 2],
    );
  });
});

describe('CM: resolving over a bad network', () => {
  it('asks again when the question is lost: 0.5, 1, 2, 4, 4 ... s, then unreachable', async () => {
    const pair = new SidrPair();
    const at: number[] = [];
    pair.network.fate = () => {
      at.push(pair.world.now());
      return [];
    };
    const { results } = pair.ask();
    await pair.world.run();
    assert.deepEqual(results, [
      { status: -1, qpn: 0, qkey: 0, privateData: NONE, failure: 'unreachable' },
    ]);
    assert.equal(at.length, 16);
    const gaps = at.slice(1).map((time, i) => (time - (at[i] ?? 0)) / 1e6);
    assert.deepEqual(gaps.slice(0, 5), [0.5, 1, 2, 4, 4]);
    const ids = new Set(pair.bodies('SIDR_REQ').map(({ requestId }) => requestId));
    assert.equal(ids.size, 1);
    assert.ok(pair.a.cm.isIdle);
  });

  it('has the same answer again when the answer is lost, without asking the consumer', async () => {
    const pair = new SidrPair();
    pair.tamper('SIDR_REP', 1, []);
    pair.serve(withQpn(9));
    const { results } = pair.ask();
    await pair.world.runFor(600_000);
    assert.equal(results[0]?.qpn, 9);
    assert.equal(pair.inquiries.length, 1);
    assert.deepEqual(pair.messages, ['SIDR_REQ', 'SIDR_REP', 'SIDR_REQ', 'SIDR_REP']);
    await assertNothingHeld(pair);
  });

  it('takes questions and answers that come twice for one', async () => {
    const pair = new SidrPair();
    pair.network.fate = () => [10, 20, 30];
    pair.serve(withQpn(9));
    const { results } = pair.ask();
    await pair.world.runFor(1_000);
    assert.equal(pair.inquiries.length, 1);
    assert.equal(results.length, 1);
    // Three questions are three answers of three copies each; the first one counts.
    assert.equal(pair.a.cm.counters.unknownConnection, 8);
  });

  it('does not ask a consumer twice that takes its time', async () => {
    const pair = new SidrPair();
    pair.serve();
    const { results } = pair.ask();
    await pair.world.runFor(20_000_000);
    assert.equal(pair.inquiries.length, 1);
    assert.ok(pair.messages.length > 5);
    const [inquiry] = pair.inquiries;
    assert.ok(inquiry);
    withQpn(4)(inquiry);
    await pair.world.runFor(1_000);
    assert.equal(results[0]?.qpn, 4);
  });

  it('ends by its time limit, the network’s hint or cancel: at most one result', async () => {
    const pair = new SidrPair();
    pair.network.fate = () => [];
    const timed = pair.ask({ timeoutUs: 2_000_000 });
    const cancelled = pair.ask();
    cancelled.resolution.cancel();
    cancelled.resolution.cancel();
    await pair.world.runFor(3_000_000);
    assert.deepEqual(
      timed.results.map(({ failure }) => failure),
      ['timed-out'],
    );
    const hinted = pair.ask();
    for (const [address, told] of [
      ['10.0.0.9', 0],
      ['10.0.0.2', 1],
    ] as const) {
      for (let i = 0; i < 20; i++) {
        pair.a.device.reportUnreachable(gidFromIp(address));
        await pair.world.runFor(100_000);
      }
      assert.equal(hinted.results.length, told);
    }
    await pair.world.run();
    assert.deepEqual(
      hinted.results.map(({ failure }) => failure),
      ['unreachable'],
    );
    assert.deepEqual(cancelled.results, []);
    assert.ok(pair.a.cm.isIdle);
  });

  it('takes back a result that is under way', async () => {
    const pair = new SidrPair();
    pair.serve(withQpn(9));
    const asking = pair.ask({ onResult: () => assert.fail('cancelled') });
    while (asking.resolution.state !== 'IDLE') await pair.world.runFor(1);
    asking.resolution.cancel();
    await pair.world.run();
  });

  it('believes only whom it has asked', async () => {
    const pair = new SidrPair();
    pair.network.fate = () => [];
    const { results } = pair.ask();
    const [req] = pair.bodies('SIDR_REQ');
    assert.ok(req);
    const body = {
      requestId: req.requestId,
      status: 0,
      additionalInfoLength: 0,
      vendorId: 0,
      qpn: 66,
      serviceId: DATAGRAMS,
      qkey: 1,
      additionalInfo: NONE,
      privateData: NONE,
    };
    pair.inject(pair.a, { name: 'SIDR_REP', body }, gidFromIp('10.0.0.77'));
    await pair.world.runFor(10);
    assert.equal(results.length, 0);
    assert.equal(pair.a.cm.counters.wrongSource, 1);
    pair.inject(pair.a, {
      name: 'SIDR_REP',
      body: { ...body, requestId: (req.requestId ^ 1) >>> 0 },
    });
    const ofAnother = { ...body, qpn: 77, serviceId: req.serviceId ^ 1n };
    pair.inject(pair.a, { name: 'SIDR_REP', body: ofAnother });
    await pair.world.runFor(10);
    assert.equal(pair.a.cm.counters.unknownConnection, 1);
    pair.inject(pair.a, { name: 'SIDR_REP', body });
    await pair.world.runFor(10);
    assert.equal(results[0]?.qpn, 66);
  });

  it('tells two who ask under the same id apart', async () => {
    const pair = new SidrPair();
    pair.network.fate = () => [];
    pair.serve();
    pair.ask();
    const [req] = pair.bodies('SIDR_REQ');
    assert.ok(req);
    pair.inject(pair.b, { name: 'SIDR_REQ', body: req });
    pair.inject(pair.b, { name: 'SIDR_REQ', body: req }, gidFromIp('10.0.0.77'));
    await pair.world.runFor(10);
    assert.deepEqual(
      pair.inquiries.map(({ remoteGid }) => ipFromGid(remoteGid)),
      ['10.0.0.1', '10.0.0.77'],
    );
  });
});
