/** Service points of every kind. */
import assert from 'node:assert/strict';
import { type Cr, type Ep, PspFlags } from 'dapl';
import { type Claim, group } from '../behaviour.js';
import { CONN_QUAL, meet, refuses, until } from '../peer.js';
import { ask, converse, established, providerPsp, template } from './service-scene.js';

export const listening = group('Listening', (claim) => {
  byTheProvider(claim);
  reserved(claim);
  anywhere(claim);
  common(claim);
});

function byTheProvider(claim: Claim): void {
  claim('a PSP with PROVIDER makes the endpoint of each request', async (pair) => {
    const peers = meet(pair);
    const { active, passive } = peers;
    const psp = providerPsp(passive);
    assert.equal(psp.query().flags, PspFlags.PROVIDER);
    ask(peers, CONN_QUAL);
    const cr = await passive.request();
    const { ep } = cr;
    assert.ok(ep !== undefined);
    assert.equal(ep.state, 'TENTATIVE_CONNECTION_PENDING');
    assert.equal(cr.query().localEp, ep);
    refuses(() => ep.free(), 'DAT_INVALID_STATE_EP_TENTCONNPENDING');
    refuses(() => cr.accept(passive.ep), 'DAT_INVALID_HANDLE_EP');
    cr.accept();
    assert.equal(ep.state, 'COMPLETION_PENDING');
    await established(peers);
    await converse(peers, ep);
    const other = active.endpoint();
    ask(peers, CONN_QUAL, other);
    const second = await passive.request();
    assert.notEqual(second.ep, ep);
    second.accept(second.ep);
    await established(peers);
    ep.free();
  });

  claim('an endpoint that a PSP made is gone when its request is rejected', async (pair) => {
    const peers = meet(pair);
    const { active, passive } = peers;
    providerPsp(passive);
    ask(peers, CONN_QUAL);
    const cr = await passive.request();
    cr.reject({ privateData: Uint8Array.of(9) });
    const [event] = await active.expect('PEER_REJECTED');
    assert.ok(event?.type === 'connection' && event.privateData[0] === 9);
    assert.equal(cr.ep?.isFreed, true);
    refuses(() => cr.ep?.query(), 'DAT_INVALID_HANDLE_EP');
  });

  claim('an endpoint that a PSP made is modified before it accepts', async (pair) => {
    const peers = meet(pair);
    const { passive } = peers;
    providerPsp(passive);
    ask(peers, CONN_QUAL);
    const cr = await passive.request();
    const pz = passive.ia.createPz();
    cr.ep?.modify({ pz });
    assert.equal(cr.ep?.pz, pz);
    cr.accept();
    await established(peers);
  });

  claim('PspFlags and endpoint go together: DAT_INVALID_PARAMETER', async (pair) => {
    const { passive } = meet(pair);
    const { ia } = passive;
    const make = (options: object): unknown => ia.createPsp({ connQual: CONN_QUAL, ...options });
    refuses(() => make({ flags: PspFlags.PROVIDER }), 'DAT_INVALID_PARAMETER');
    refuses(() => make({ endpoint: template(passive) }), 'DAT_INVALID_PARAMETER');
    const flags = PspFlags.PROVIDER;
    refuses(() => make({ flags, endpoint: { pz: {} } }), 'DAT_INVALID_HANDLE_PZ');
    refuses(() => make({ flags: 2 }), 'DAT_INVALID_PARAMETER');
  });
}

function reserved(claim: Claim): void {
  claim('an RSP takes one request, for the endpoint that it reserves', async (pair) => {
    const peers = meet(pair);
    const { active, passive } = peers;
    const { ia, ep, evd } = passive;
    const rsp = ia.createRsp({ connQual: CONN_QUAL, ep, evd });
    assert.equal(ep.state, 'RESERVED');
    const { serviceId } = rsp;
    assert.deepEqual({ ...rsp.query() }, { ia, connQual: CONN_QUAL, serviceId, ep, evd });
    refuses(() => ep.free(), 'DAT_INVALID_STATE_EP_RESERVED');
    refuses(() => ep.connect({ address: '192.0.2.9', connQual: 1 }), 'DAT_INVALID_STATE');
    ask(peers, CONN_QUAL);
    const cr = await passive.request();
    assert.equal(cr.ep, ep);
    assert.equal(cr.sp, rsp);
    assert.equal(ep.state, 'PASSIVE_CONNECTION_PENDING');
    const other = active.endpoint();
    ask(peers, CONN_QUAL, other);
    const [refused] = await active.expect('NON_PEER_REJECTED');
    assert.ok(refused?.type === 'connection' && refused.ep === other);
    cr.accept();
    await established(peers);
    await converse(peers, ep);
    assert.equal(rsp.state, 'FREE');
    rsp.free();
  });

  claim('freeing an RSP gives its endpoint back, UNCONNECTED', async (pair) => {
    const peers = meet(pair);
    const { active, passive } = peers;
    const { ia, ep, evd } = passive;
    const rsp = ia.createRsp({ connQual: CONN_QUAL, ep, evd });
    rsp.free();
    assert.equal(ep.state, 'UNCONNECTED');
    refuses(() => rsp.free(), 'DAT_INVALID_HANDLE_RSP');
    refuses(() => rsp.query(), 'DAT_INVALID_HANDLE_RSP');
    ask(peers, CONN_QUAL);
    await active.expect('NON_PEER_REJECTED');
    ia.createRsp({ connQual: CONN_QUAL, ep, evd });
    active.ep.reset();
    ask(peers, CONN_QUAL);
    (await passive.request()).accept(ep);
    await established(peers);
  });

  claim('rejecting the request of an RSP leaves its endpoint UNCONNECTED', async (pair) => {
    const peers = meet(pair);
    const { active, passive } = peers;
    const { ia, ep, evd } = passive;
    ia.createRsp({ connQual: CONN_QUAL, ep, evd });
    ask(peers, CONN_QUAL);
    const cr = await passive.request();
    refuses(() => cr.accept(passive.endpoint()), 'DAT_INVALID_HANDLE_EP');
    cr.reject();
    await active.expect('PEER_REJECTED');
    assert.equal(ep.state, 'UNCONNECTED');
    ep.free();
  });

  claim('an RSP reserves an unconnected endpoint only: DAT_INVALID_STATE', async (pair) => {
    const { active, passive } = meet(pair);
    const { ia, ep, evd } = passive;
    const make = (connQual: number, which: Ep = ep): unknown =>
      ia.createRsp({ connQual, ep: which, evd });
    make(CONN_QUAL);
    refuses(() => make(CONN_QUAL + 1), 'DAT_INVALID_STATE_EP_RESERVED');
    const other = passive.endpoint();
    refuses(() => make(CONN_QUAL, other), 'DAT_CONN_QUAL_IN_USE');
    assert.equal(other.state, 'UNCONNECTED');
    refuses(() => make(CONN_QUAL + 1, active.ep), 'DAT_INVALID_HANDLE_EP');
    refuses(() => make(0, other), 'DAT_INVALID_PARAMETER');
    other.free();
  });

  claim('without an EVD, an RSP offers its request as a stream', async (pair) => {
    const peers = meet(pair);
    const { passive } = peers;
    const rsp = passive.ia.createRsp({ connQual: CONN_QUAL, ep: passive.ep });
    const requests: Cr[] = [];
    rsp.requests$.subscribe((event) => requests.push(event.cr));
    ask(peers, CONN_QUAL);
    await until(
      pair,
      () => requests.length > 0,
      () => 'no request comes',
    );
    requests[0]?.accept();
    await established(peers);
    assert.equal(requests.length, 1);
  });
}

function anywhere(claim: Claim): void {
  claim('createPspAny listens on a qualifier from 1024 up that is free', async (pair) => {
    const peers = meet(pair);
    const { passive } = peers;
    const { ia, evd } = passive;
    ia.createPsp({ connQual: 1025, evd });
    const points = [1, 2, 3].map(() => ia.createPspAny({ evd }));
    const quals = points.map((point) => point.connQual);
    assert.equal(new Set(quals).size, 3);
    for (const qual of quals) assert.ok(qual >= 1024 && qual <= 65535 && qual !== 1025);
    ask(peers, quals[2] ?? 0);
    (await passive.request()).accept(passive.ep);
    await established(peers);
    assert.equal(points[0]?.query().flags, PspFlags.CONSUMER);
  });
}

function common(claim: Claim): void {
  claim('a CSP listens on an address and port, for commonConnect', async (pair) => {
    const peers = meet(pair);
    const { active, passive } = peers;
    const { ia, evd, ep } = passive;
    const address = { address: pair.passiveAddress, port: CONN_QUAL };
    const csp = ia.createCsp({ address, evd });
    const query = csp.query();
    assert.equal(query.ia, ia);
    assert.equal(query.evd, evd);
    assert.equal(query.port, CONN_QUAL);
    assert.equal(query.address, pair.passiveAddress);
    assert.equal(query.comm.type, 'SOCK_STREAM');
    active.ep.commonConnect(address);
    const cr = await passive.request();
    assert.equal(cr.sp, csp);
    cr.accept(ep);
    await established(peers);
    await converse(peers, ep);
    csp.free();
    refuses(() => csp.query(), 'DAT_INVALID_HANDLE_CSP');
  });

  claim('a CSP listens on all addresses by a wildcard', async (pair) => {
    const peers = meet(pair);
    const { active, passive } = peers;
    const wildcard = pair.passiveAddress.includes(':') ? '[::]' : '0.0.0.0';
    passive.ia.createCsp({ address: `${wildcard}:${CONN_QUAL}`, evd: passive.evd });
    active.ep.commonConnect({ address: pair.passiveAddress, port: CONN_QUAL });
    (await passive.request()).accept(passive.ep);
    await established(peers);
  });

  claim('a CSP refuses what is not its own address, port or kind of socket', async (pair) => {
    const { ia } = meet(pair).passive;
    const { passiveAddress } = pair;
    const make = (address: unknown, comm?: unknown): unknown =>
      ia.createCsp({ address, comm } as Parameters<typeof ia.createCsp>[0]);
    refuses(() => make('203.0.113.7:7471'), 'DAT_INVALID_ADDRESS_UNSUPPORTED');
    refuses(() => make('nonsense'), 'DAT_INVALID_ADDRESS_MALFORMED');
    refuses(() => make({ address: passiveAddress, port: 0 }), 'DAT_INVALID_PARAMETER');
    const address = { address: passiveAddress, port: CONN_QUAL };
    refuses(() => make(address, { type: 'SOCK_DGRAM' }), 'DAT_COMM_NOT_SUPPORTED');
    refuses(() => make(address, 7), 'DAT_COMM_NOT_SUPPORTED');
    make(address, { type: 'SOCK_STREAM', protocol: 'IPPROTO_TCP' });
    refuses(() => make(address), 'DAT_CONN_QUAL_IN_USE');
    refuses(() => ia.createPsp({ connQual: CONN_QUAL }), 'DAT_CONN_QUAL_IN_USE');
  });
}
