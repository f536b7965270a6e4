/** Datagrams without a receiver are lost, without any other effect. */
import assert from 'node:assert/strict';
import { DatDtoStatus, type Evd, type Ia, type Lmr, nameOf, UdEp } from 'dapl';
import { type Claim, group } from '../behaviour.js';
import type { CompliancePair } from '../fixture.js';
import { refuses, settle } from '../peer.js';
import { PATIENCE_MS } from '../pace.js';

const { GRH_BYTES } = UdEp;

interface Side {
  readonly ep: UdEp;
  readonly evd: Evd;
  readonly lmr: Lmr;
}

function side(ia: Ia): Side {
  const pz = ia.createPz();
  const evd = ia.createEvd({ qlen: 256 });
  const ep = ia.createUdEndpoint({ pz, recvEvd: evd, requestEvd: evd });
  return { ep, evd, lmr: ia.allocate(1 << 16, { pz }) };
}

/** Cookie and length of the next completion, which must be a success. */
async function next({ evd }: Side): Promise<[number, number]> {
  const { event } = await evd.wait({ timeoutMs: PATIENCE_MS });
  assert.ok(event.type === 'datagram', event.type);
  assert.equal(nameOf(DatDtoStatus, event.status), 'SUCCESS');
  return [event.cookie, event.transferredLength];
}

function scene(pair: CompliancePair) {
  const [client, server] = [side(pair.active), side(pair.passive)];
  const { qpn } = server.ep;
  const { qkey } = server.ep.attributes;
  const at = (number: number) =>
    client.ep.createAddressHandle({ address: pair.passiveAddress, qpn: number, qkey });
  const send = async (bytes: number, cookie: number, to = at(qpn)): Promise<void> => {
    client.ep.postSendUd(client.lmr.segment(0, bytes), to, cookie);
    assert.equal((await next(client))[0], cookie, 'the sender succeeds');
  };
  return { client, server, qpn, at, send };
}

export const datagramLosses = group('Losing datagrams', (plain) => {
  const claim: Claim = (name, run) => plain(name, run, ['ud']);

  claim('no receive posted: the datagram is lost, the next one comes', async (pair) => {
    const { server, send } = scene(pair);
    await send(10, 1);
    await settle(pair);
    server.ep.postRecv(server.lmr.segment(0, 100), 11);
    await send(20, 2);
    assert.deepEqual(await next(server), [11, GRH_BYTES + 20]);
    await settle(pair);
    assert.equal(server.evd.dequeue(), undefined);
  });

  claim('a datagram too long for its receive is dropped, and the receive stays', async (pair) => {
    const { server, send } = scene(pair);
    server.lmr.bytes.fill(0xee);
    server.ep.postRecv(server.lmr.segment(0, GRH_BYTES + 16), 11);
    await send(17, 1);
    await send(16, 2);
    assert.deepEqual(await next(server), [11, GRH_BYTES + 16]);
    assert.equal(server.lmr.bytes[GRH_BYTES + 16], 0xee);
  });

  claim('a number that no queue pair has: lost; the sender goes on', async (pair) => {
    const { server, qpn, at, send } = scene(pair);
    server.ep.postRecv(server.lmr.segment(0, 100), 11);
    await send(10, 1, at(qpn ^ 0x800000));
    await send(12, 2);
    assert.deepEqual(await next(server), [11, GRH_BYTES + 12]);
  });

  claim('a datagram to an endpoint that is freed is lost', async (pair) => {
    const { server, at, qpn, send } = scene(pair);
    const to = at(qpn);
    server.ep.free();
    await send(10, 1, to);
    await settle(pair);
    assert.equal(server.evd.dequeue(), undefined);
  });

  claim('an address handle that is freed, or foreign, is refused', async (pair) => {
    const { client, server, at, qpn, send } = scene(pair);
    const to = at(qpn);
    to.free();
    refuses(() => client.ep.postSendUd(client.lmr.segment(0, 1), to), 'DAT_INVALID_HANDLE');
    const { lmr } = server;
    const own = at(qpn);
    refuses(() => server.ep.postSendUd(lmr.segment(0, 1), own), 'DAT_PROTECTION_VIOLATION');
    await send(1, 1);
  });

  claim('a datagram endpoint has no RDMA and no atomics', async (pair) => {
    const { client } = scene(pair);
    for (const call of ['postRdmaWrite', 'postRdmaRead', 'postFetchAdd', 'postCompareSwap']) {
      assert.ok(!(call in client.ep), call);
    }
  });
});
