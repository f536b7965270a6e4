/** Service ids that are not ports: no header of rdma_cm, the full length of private data. */
import assert from 'node:assert/strict';
import type { ConnectionEvent, ConnectOptions, PspOptions } from 'dapl';
import { type Claim, group } from '../behaviour.js';
import { CONN_QUAL, fillPattern, meet, type Peers, refuses } from '../peer.js';
import { converse, established } from './service-scene.js';

/** A service id of SDP; then one of an organization, and the highest. */
const SERVICE_ID = 0x0000_0000_0001_1d2fn;
const OTHERS = [0x1000_0aab_bcc0_0001n, 0xffff_ffff_ffff_ffffn];
const REQUEST_BYTES = 92;
const NEEDS = ['service-id'] as const;

function pattern(length: number, seed: number): Uint8Array {
  const bytes = new Uint8Array(length);
  fillPattern(bytes, seed);
  return bytes;
}

function ask({ pair, active }: Peers, serviceId: bigint, privateData?: Uint8Array): void {
  const to = { address: pair.passiveAddress, serviceId };
  active.ep.connect({ ...to, ...(privateData && { privateData }) });
}

const dataOf = (event: unknown): Uint8Array => (event as ConnectionEvent).privateData;

export const serviceIds = group('Service ids', (claim) => {
  connecting(claim);
  refusing(claim);
  elsewhere(claim);
});

function connecting(claim: Claim): void {
  for (const serviceId of [SERVICE_ID, ...OTHERS]) {
    claim(
      `connect and accept by service id 0x${serviceId.toString(16)}, with all private data`,
      async (pair) => {
        const peers = meet(pair);
        const { active, passive } = peers;
        const psp = passive.ia.createPsp({ serviceId, evd: passive.evd });
        assert.deepEqual([psp.serviceId, psp.connQual], [serviceId, 0]);
        assert.equal(psp.query().serviceId, serviceId);
        const [asked, answered] = [pattern(REQUEST_BYTES, 1), pattern(196, 2)];
        ask(peers, serviceId, asked);
        const cr = await passive.request();
        assert.deepEqual(new Uint8Array(cr.privateData), asked);
        const { remotePort, remoteAddress, connQual } = cr.query();
        assert.deepEqual([remotePort, remoteAddress, connQual], [0, active.ia.address, 0]);
        assert.equal(cr.query().serviceId, serviceId);
        cr.accept(passive.ep, { privateData: answered });
        const [event] = await active.expect('ESTABLISHED');
        assert.deepEqual(new Uint8Array(dataOf(event)), answered);
        await passive.expect('ESTABLISHED');
        const { remoteServiceId, remoteConnQual } = active.ep.query();
        assert.deepEqual([remoteServiceId, remoteConnQual], [serviceId, 0]);
        const ports = [active.ep.query().localPortQual, passive.ep.query().localPortQual];
        assert.deepEqual(ports, [0, 0], 'a service id of no port');
        await converse(peers, passive.ep);
      },
      NEEDS,
    );
  }

  claim(
    'a reserved service point on a service id, and dupConnect to one',
    async (pair) => {
      const peers = meet(pair);
      const { active, passive } = peers;
      const { ia, evd, ep } = passive;
      ia.createRsp({ serviceId: SERVICE_ID, ep, evd });
      ask(peers, SERVICE_ID);
      (await passive.request()).accept();
      await established(peers);
      ia.createPsp({ serviceId: SERVICE_ID, evd });
      const privateData = pattern(REQUEST_BYTES, 3);
      active.endpoint().dupConnect(active.ep, { privateData });
      const cr = await passive.request();
      assert.deepEqual(new Uint8Array(cr.privateData), privateData);
      cr.accept(passive.endpoint());
      await established(peers);
    },
    NEEDS,
  );
}

function refusing(claim: Claim): void {
  claim(
    'nobody listens on a service id: NON_PEER_REJECTED with reason 8',
    async (pair) => {
      const peers = meet(pair);
      peers.passive.ia.createPsp({ connQual: CONN_QUAL });
      // A plain port number is not the port's service id, and SDP has another port space.
      for (const serviceId of [BigInt(CONN_QUAL), SERVICE_ID]) {
        ask(peers, serviceId);
        const [event] = await peers.active.expect('NON_PEER_REJECTED');
        assert.equal((event as ConnectionEvent).rejectReason, 8);
        peers.active.ep.reset();
      }
    },
    NEEDS,
  );

  claim(
    'reject of a request to a service id: PEER_REJECTED with all private data',
    async (pair) => {
      const peers = meet(pair);
      const { active, passive } = peers;
      passive.ia.createPsp({ serviceId: SERVICE_ID, evd: passive.evd });
      ask(peers, SERVICE_ID);
      const privateData = pattern(148, 4);
      (await passive.request()).reject({ privateData });
      const [event] = await active.expect('PEER_REJECTED');
      assert.deepEqual(new Uint8Array(dataOf(event)), privateData);
    },
    NEEDS,
  );

  claim(
    'one service point listens on a service id: DAT_CONN_QUAL_IN_USE',
    async ({ passive }) => {
      const psp = passive.createPsp({ serviceId: SERVICE_ID });
      refuses(() => passive.createPsp({ serviceId: SERVICE_ID }), 'DAT_CONN_QUAL_IN_USE');
      passive.createPsp({ connQual: Number(SERVICE_ID & 0xffffn) });
      psp.free();
      passive.createPsp({ serviceId: SERVICE_ID });
    },
    NEEDS,
  );

  claim('a service id is 64 bits, that of no port, and alone: DAT_INVALID_PARAMETER', async (p) => {
    const { active, passive } = meet(p);
    const ofAPort = [0x0002n, 0x0106n, 0x0111n, 0x013fn].map((space) => (space << 16n) | 7471n);
    const wrong: unknown[] = [-1n, 1n << 64n, 7471, '7471', null, ...ofAPort];
    const both = { connQual: CONN_QUAL, serviceId: SERVICE_ID };
    for (const to of [...wrong.map((serviceId) => ({ serviceId })), both, {}]) {
      const listen = to as PspOptions;
      const ask = { address: p.passiveAddress, ...to } as ConnectOptions;
      refuses(() => passive.ia.createPsp(listen), 'DAT_INVALID_ARG2');
      refuses(() => passive.ia.createRsp({ ...listen, ep: passive.ep }), 'DAT_INVALID_ARG2');
      refuses(() => active.ep.connect(ask), 'DAT_INVALID_ARG3');
    }
    const privateData = new Uint8Array(REQUEST_BYTES + 1);
    const to = { address: p.passiveAddress, serviceId: SERVICE_ID, privateData };
    refuses(() => active.ep.connect(to), 'DAT_INVALID_PARAMETER');
    assert.deepEqual([active.ep.state, passive.ep.state], ['UNCONNECTED', 'UNCONNECTED']);
  });
}

function elsewhere(claim: Claim): void {
  claim(
    'a request is handed from a service id to a port, and from a port to a service id',
    async (pair) => {
      const peers = meet(pair);
      const { active, passive } = peers;
      const { ia, evd } = passive;
      const byId = ia.createPsp({ serviceId: SERVICE_ID, evd });
      const byPort = ia.createPsp({ connQual: CONN_QUAL, evd });
      const privateData = pattern(REQUEST_BYTES, 5);
      ask(peers, SERVICE_ID, privateData);
      const first = await passive.request();
      refuses(() => first.handoff(SERVICE_ID + 1n), 'DAT_INVALID_PARAMETER');
      first.handoff(CONN_QUAL);
      const second = await passive.request();
      assert.equal(second.sp, byPort);
      second.handoff(SERVICE_ID);
      const third = await passive.request();
      assert.equal(third.sp, byId);
      assert.deepEqual(new Uint8Array(third.privateData), privateData);
      third.accept(passive.ep);
      await established(peers);
      await converse(peers, passive.ep);
      assert.equal(active.ep.state, 'CONNECTED');
    },
    NEEDS,
  );
}
