/** Connecting: private data, refusals, many connections at once, and reconnecting. */
import assert from 'node:assert/strict';
import type { CommonAddress, ConnectionEvent, DatEvent } from 'dapl';
import { type Claim, group } from '../behaviour.js';
import type { CompliancePair } from '../fixture.js';
import {
  ask,
  CONN_QUAL,
  connect,
  connected,
  expectQuiet,
  fillPattern,
  meet,
  Peer,
  refuses,
  settle,
  textOf,
} from '../peer.js';

/** Bytes of private data that fit (IBTA 12.6, without rdma_cm's header in the request). */
const REQUEST_BYTES = 56;
const ACCEPT_BYTES = 196;
const REJECT_BYTES = 148;

function bytesOf(length: number, seed: number): Uint8Array {
  const bytes = new Uint8Array(length);
  fillPattern(bytes, seed);
  return bytes;
}

const SHORT = Uint8Array.of(1, 2, 3);

/** Asserts that private data arrives, padded with zeros or exact, as the pair declares. */
function assertArrives(
  { privateData = 'padded' }: CompliancePair,
  arrived: Uint8Array | undefined,
  fieldBytes: number,
): void {
  const expected = new Uint8Array(privateData === 'padded' ? fieldBytes : SHORT.length);
  expected.set(SHORT);
  assert.deepEqual([...(arrived ?? [])], [...expected], `private data is to be ${privateData}`);
}

function connectionEvent(event: DatEvent | undefined): ConnectionEvent {
  assert.ok(event?.type === 'connection');
  return event;
}

export const connecting = group('Connecting', (claim) => {
  claim('connect and accept: ESTABLISHED and CONNECTED on both sides, once', async (pair) => {
    const peers = await connected(pair);
    assert.equal(peers.active.ep.state, 'CONNECTED');
    assert.equal(peers.passive.ep.state, 'CONNECTED');
    await expectQuiet(peers);
  });

  claim('the request names address and qualifier of both', async (pair) => {
    const peers = meet(pair);
    const cr = await ask(peers);
    const { localAddress, remoteAddress, sp } = cr.query();
    assert.equal(localAddress, pair.passiveAddress);
    assert.equal(remoteAddress, pair.active.address);
    assert.equal(sp.connQual, CONN_QUAL);
    cr.reject();
  });

  privateData(claim);
  refusals(claim);
  severalTimes(claim);
  earlyData(claim);
});

function privateData(claim: Claim): void {
  claim('private data of a request that is short arrives as the fixture states', async (pair) => {
    const cr = await ask(meet(pair), { privateData: SHORT });
    assertArrives(pair, cr.privateData, REQUEST_BYTES);
    cr.reject();
  });

  claim('private data of an answer that is short arrives as the fixture states', async (pair) => {
    const accepted = meet(pair);
    (await ask(accepted)).accept(accepted.passive.ep, { privateData: SHORT });
    const [established] = await accepted.active.expect('ESTABLISHED');
    assertArrives(pair, connectionEvent(established).privateData, ACCEPT_BYTES);
    const refused = meet(pair);
    (await ask(refused)).reject({ privateData: SHORT });
    const [rejected] = await refused.active.expect('PEER_REJECTED');
    assertArrives(pair, connectionEvent(rejected).privateData, REJECT_BYTES);
  });

  claim('private data of a request: all 56 bytes arrive', async (pair) => {
    const sent = bytesOf(REQUEST_BYTES, 1);
    const cr = await ask(meet(pair), { privateData: sent });
    assert.deepEqual(new Uint8Array(cr.privateData), sent);
    cr.reject();
  });

  claim('private data of an accept: all 196 bytes arrive with ESTABLISHED', async (pair) => {
    const peers = meet(pair);
    const sent = bytesOf(ACCEPT_BYTES, 2);
    (await ask(peers)).accept(peers.passive.ep, { privateData: sent });
    const [event] = await peers.active.expect('ESTABLISHED');
    assert.deepEqual(new Uint8Array(connectionEvent(event).privateData), sent);
  });

  claim('private data of a reject: all 148 bytes arrive with PEER_REJECTED', async (pair) => {
    const peers = meet(pair);
    const sent = bytesOf(REJECT_BYTES, 3);
    (await ask(peers)).reject({ privateData: sent });
    const [event] = await peers.active.expect('PEER_REJECTED');
    assert.deepEqual(new Uint8Array(connectionEvent(event).privateData), sent);
    await expectQuiet(peers);
  });

  claim('private data of one byte too many is refused, and the call can be repeated', async (p) => {
    const peers = meet(p);
    const { active, passive } = peers;
    const tooLong = { privateData: new Uint8Array(REQUEST_BYTES + 1) };
    const to = { address: p.passiveAddress, connQual: CONN_QUAL };
    refuses(() => active.ep.connect({ ...to, ...tooLong }), 'DAT_INVALID_PARAMETER');
    assert.equal(active.ep.state, 'UNCONNECTED');
    const cr = await ask(peers);
    const accepted = { privateData: new Uint8Array(ACCEPT_BYTES + 1) };
    refuses(() => cr.accept(passive.ep, accepted), 'DAT_INVALID_PARAMETER');
    const rejected = { privateData: new Uint8Array(REJECT_BYTES + 1) };
    refuses(() => cr.reject(rejected), 'DAT_INVALID_PARAMETER');
    cr.accept(passive.ep);
    await active.expect('ESTABLISHED');
    await passive.expect('ESTABLISHED');
  });

  claim('private data may be changed by its owner once the call has returned', async (pair) => {
    const sent = Uint8Array.of(7);
    const peers = meet(pair);
    const asked = ask(peers, { privateData: sent });
    sent[0] = 8;
    const cr = await asked;
    assert.equal(cr.privateData[0], 7);
    cr.reject();
  });
}

function refusals(claim: Claim): void {
  claim('nobody listens: NON_PEER_REJECTED with reason 8', async (pair) => {
    const peers = meet(pair);
    peers.active.ep.connect({ address: pair.passiveAddress, connQual: CONN_QUAL });
    const [event] = await peers.active.expect('NON_PEER_REJECTED');
    assert.equal(connectionEvent(event).rejectReason, 8);
    assert.equal(peers.active.ep.state, 'DISCONNECTED');
    await expectQuiet(peers);
  });

  claim(
    'reject: PEER_REJECTED, nothing at the rejecting side, and the request is gone',
    async (p) => {
      const peers = meet(p);
      const cr = await ask(peers);
      cr.reject();
      await peers.active.expect('PEER_REJECTED');
      refuses(() => cr.reject(), 'DAT_INVALID_HANDLE');
      refuses(() => cr.accept(peers.passive.ep), 'DAT_INVALID_HANDLE');
      assert.equal(peers.passive.ep.state, 'UNCONNECTED');
      await expectQuiet(peers);
    },
  );

  claim('nobody answers: TIMED_OUT after the timeout', async (pair) => {
    const { active, passive } = meet(pair);
    const psp = passive.ia.createPsp({ connQual: CONN_QUAL, evd: passive.evd });
    // On a slow machine the time may be over before the request is sent.
    active.ep.connect({ address: pair.passiveAddress, connQual: CONN_QUAL, timeoutMs: 50 });
    await active.expect('TIMED_OUT');
    assert.equal(active.ep.state, 'DISCONNECTED');
    psp.free();
  });

  claim('accept after the peer gave up: ACCEPT_COMPLETION_ERROR', async (pair) => {
    const peers = meet(pair);
    const cr = await ask(peers);
    peers.active.ep.disconnect();
    await peers.active.expect('DISCONNECTED');
    await settle(pair);
    cr.accept(peers.passive.ep);
    await peers.passive.expect('ACCEPT_COMPLETION_ERROR');
    assert.equal(peers.passive.ep.state, 'DISCONNECTED');
  });

  claim(
    'nobody is at the address: UNREACHABLE',
    async (pair) => {
      const { active } = meet(pair);
      const address = pair.unreachableAddress ?? '';
      active.ep.connect({ address, connQual: CONN_QUAL, timeoutMs: 4000 });
      await active.expect('UNREACHABLE');
      assert.equal(active.ep.state, 'DISCONNECTED');
    },
    ['unreachable'],
  );

  claim('disconnect while connecting: DISCONNECTED, and no ESTABLISHED after it', async (pair) => {
    const peers = meet(pair);
    const cr = await ask(peers);
    peers.active.ep.disconnect();
    await peers.active.expect('DISCONNECTED');
    cr.reject();
    await expectQuiet(peers);
  });

  claim('a freed service point refuses; the requests it handed out stay valid', async (pair) => {
    const peers = meet(pair);
    const cr = await ask(peers);
    const late = peers.active.endpoint();
    late.connect({ address: pair.passiveAddress, connQual: CONN_QUAL });
    await peers.active.expect('NON_PEER_REJECTED');
    cr.accept(peers.passive.ep);
    await peers.active.expect('ESTABLISHED');
  });

  claim('one service point listens on a qualifier: DAT_CONN_QUAL_IN_USE', async ({ passive }) => {
    const psp = passive.createPsp({ connQual: CONN_QUAL });
    refuses(() => passive.createPsp({ connQual: CONN_QUAL }), 'DAT_CONN_QUAL_IN_USE');
    psp.free();
    passive.createPsp({ connQual: CONN_QUAL });
  });
}

function severalTimes(claim: Claim): void {
  claim('reset and reconnect: a fresh queue pair number, and data passes', async (pair) => {
    const peers = await connected(pair);
    const { active, passive } = peers;
    const before = [active.ep.qpn, passive.ep.qpn];
    active.ep.disconnect();
    await active.expect('DISCONNECTED');
    await passive.expect('DISCONNECTED');
    active.ep.reset();
    passive.ep.reset();
    assert.equal(active.ep.state, 'UNCONNECTED');
    assert.notEqual(active.ep.qpn, before[0]);
    assert.notEqual(passive.ep.qpn, before[1]);
    await connect(peers);
    passive.ep.postRecv(passive.lmr.segment(), 1);
    active.ep.postSend(active.lmr.segment(0, 8), 2);
    await passive.expect('dto 1 SUCCESS');
    await active.expect('dto 2 SUCCESS');
  });

  claim('reset after a refusal, and connect again', async (pair) => {
    const peers = meet(pair);
    peers.active.ep.connect({ address: pair.passiveAddress, connQual: 1 });
    await peers.active.expect('NON_PEER_REJECTED');
    peers.active.ep.reset();
    await connect(peers);
  });

  claim('100 endpoints connect at once, and each gets its own message', async (pair) => {
    const { active, passive } = meet(pair);
    const psp = passive.ia.createPsp({ connQual: CONN_QUAL, evd: passive.evd });
    const count = 100;
    for (let i = 0; i < count; i++) {
      active.lmr.bytes[i] = i;
      const privateData = Uint8Array.of(i);
      const to = { address: pair.passiveAddress, connQual: CONN_QUAL };
      active.endpoint().connect({ ...to, privateData });
    }
    const received = new Set<number>();
    const sent = new Set<number>();
    const serve = async (): Promise<void> => {
      while (received.size < count) {
        const event = await passive.next();
        if (event.type === 'connection-request') {
          const i = event.cr.privateData[0] ?? 0;
          const ep = passive.endpoint();
          ep.postRecv(passive.lmr.segment(i, 1), i);
          event.cr.accept(ep, { privateData: Uint8Array.of(i) });
        } else if (event.type === 'dto') {
          assert.equal(passive.lmr.bytes[event.cookie], event.cookie);
          received.add(event.cookie);
        }
      }
    };
    const send = async (): Promise<void> => {
      while (sent.size < count) {
        const event = await active.next();
        if (event.type === 'connection') {
          const i = connectionEvent(event).privateData[0] ?? 0;
          event.ep.postSend(active.lmr.segment(i, 1), i);
        } else if (event.type === 'dto') sent.add(event.cookie);
      }
    };
    await Promise.all([serve(), send()]);
    psp.free();
  });

  claim(
    'an adapter connects to itself',
    async (pair) => {
      const passive = new Peer(pair.passive);
      const active = new Peer(pair.passive);
      await connect({ pair, active, passive });
      passive.ep.postRecv(passive.lmr.segment(), 1);
      active.ep.postSend(active.lmr.segment(0, 5000), 2);
      await passive.expect('dto 1 SUCCESS');
    },
    ['loopback'],
  );
}

function earlyData(claim: Claim): void {
  claim('data sent at once finds ESTABLISHED before it at the accepting side', async (pair) => {
    const peers = meet(pair);
    const { active, passive } = peers;
    passive.ep.postRecv(passive.lmr.segment(), 1);
    const cr = await ask(peers);
    cr.accept(passive.ep);
    await active.expect('ESTABLISHED');
    active.ep.postSend(active.lmr.segment(0, 8), 2);
    await passive.expect('ESTABLISHED', 'dto 1 SUCCESS');
  });

  claim(
    'a send posted in COMPLETION_PENDING arrives once the peer is established',
    async (pair) => {
      const peers = meet(pair);
      const { active, passive } = peers;
      active.ep.postRecv(active.lmr.segment(), 1);
      const cr = await ask(peers);
      cr.accept(passive.ep);
      assert.equal(passive.ep.state, 'COMPLETION_PENDING');
      passive.lmr.bytes[0] = 42;
      passive.ep.postSend(passive.lmr.segment(0, 8), 2);
      await active.expect('ESTABLISHED', 'dto 1 SUCCESS');
      assert.equal(active.lmr.bytes[0], 42);
      await passive.expect('ESTABLISHED', 'dto 2 SUCCESS');
    },
  );

  claim('sends that wait in COMPLETION_PENDING are flushed if the peer gives up', async (pair) => {
    const peers = meet(pair);
    const { active, passive } = peers;
    const cr = await ask(peers);
    cr.accept(passive.ep);
    passive.ep.postSend([], 9);
    active.ep.disconnect();
    const seen = [await passive.next(), await passive.next()].map(textOf);
    assert.deepEqual(seen.sort(), ['ACCEPT_COMPLETION_ERROR', 'dto 9 FLUSHED']);
    await active.expect('DISCONNECTED');
    await expectQuiet(peers);
  });
}

export const connectVariants = group('Connecting, other ways', (claim) => {
  claim('dupConnect goes where a connected endpoint is connected to', async (pair) => {
    const { active, passive } = await connected(pair);
    const psp = passive.ia.createPsp({ connQual: CONN_QUAL, evd: passive.evd });
    const [here, there] = [active.endpoint(), passive.endpoint()];
    here.dupConnect(active.ep, { privateData: Uint8Array.of(5, 6), timeoutMs: 4000 });
    const cr = await passive.request();
    assert.deepEqual([...cr.privateData.subarray(0, 2)], [5, 6]);
    const { remotePort } = cr.query();
    assert.ok(remotePort > 0);
    cr.accept(there);
    const [established] = await active.expect('ESTABLISHED');
    assert.ok(established?.type === 'connection' && established.ep === here);
    assert.equal(here.query().remoteConnQual, CONN_QUAL);
    const ports = [here.query().localPortQual, there.query().localPortQual];
    assert.deepEqual(ports, [remotePort, CONN_QUAL]);
    assert.equal(active.endpoint().query().localPortQual, undefined, 'never connected');
    assert.equal(here.query().remoteAddress, pair.passiveAddress);
    psp.free();
  });

  claim('dupConnect refuses what is not connected, or has accepted', async (pair) => {
    const { active, passive } = await connected(pair);
    const [a, b] = [active.endpoint(), active.endpoint()];
    refuses(() => a.dupConnect(b), 'DAT_INVALID_STATE_EP_NOTREADY');
    refuses(() => a.dupConnect(passive.ep), 'DAT_INVALID_HANDLE_EP');
    const there = passive.endpoint();
    refuses(() => there.dupConnect(passive.ep), 'DAT_INVALID_ARG2');
    refuses(() => active.ep.dupConnect(active.ep), 'DAT_INVALID_STATE_EP_CONNECTED');
    const options = { timeoutMs: 0 };
    refuses(() => a.dupConnect(active.ep, options), 'DAT_INVALID_ARG3');
    assert.deepEqual([a.state, there.state], ['UNCONNECTED', 'UNCONNECTED']);
  });

  claim('dupConnect to a service point that is gone: NON_PEER_REJECTED', async (pair) => {
    const { active } = await connected(pair);
    active.endpoint().dupConnect(active.ep);
    await active.expect('NON_PEER_REJECTED');
    assert.equal(active.ep.state, 'CONNECTED');
  });

  for (const [name, addressOf] of [
    ['text', (ip: string) => (ip.includes(':') ? `[${ip}]` : ip) + `:${CONN_QUAL}`],
    ['an object', (ip: string) => ({ address: ip, port: CONN_QUAL })],
  ] as const) {
    claim(`commonConnect by ${name}`, async (pair) => {
      const { active, passive } = meet(pair);
      const psp = passive.ia.createPsp({ connQual: CONN_QUAL, evd: passive.evd });
      active.ep.commonConnect(addressOf(pair.passiveAddress), { privateData: Uint8Array.of(9) });
      const cr = await passive.request();
      assert.equal(cr.privateData[0], 9);
      cr.accept(passive.ep);
      await active.expect('ESTABLISHED');
      psp.free();
    });
  }

  claim('commonConnect refuses what is no address', async (pair) => {
    const { active } = meet(pair);
    const ip = pair.passiveAddress;
    for (const [address, code] of [
      [ip, 'DAT_INVALID_ADDRESS_MALFORMED'],
      [`${ip}:`, 'DAT_INVALID_ADDRESS_MALFORMED'],
      ['a name:7', 'DAT_INVALID_ADDRESS_MALFORMED'],
      ['[::1:7', 'DAT_INVALID_ADDRESS_MALFORMED'],
      [`${ip}:0`, 'DAT_INVALID_ARG2'],
      [`${ip}:65536`, 'DAT_INVALID_ARG2'],
      [{ address: ip }, 'DAT_INVALID_ARG2'],
      [{ address: 5, port: 7 }, 'DAT_INVALID_ARG2'],
      [undefined, 'DAT_INVALID_ARG2'],
    ] as const) {
      refuses(() => active.ep.commonConnect(address as CommonAddress), code);
    }
    assert.equal(active.ep.state, 'UNCONNECTED');
  });

  claim(
    'reset and reconnect, many times: fresh queue pair numbers, all data right',
    async (pair) => {
      const { active, passive } = await connected(pair);
      const psp = passive.ia.createPsp({ connQual: CONN_QUAL, evd: passive.evd });
      const numbers = new Set<number>([active.ep.qpn]);
      for (let round = 1; round <= 10; round++) {
        active.ep.disconnect(round % 2 === 0 ? 'graceful' : 'abrupt');
        await active.expect('DISCONNECTED');
        await passive.until('DISCONNECTED');
        active.ep.reset();
        passive.ep.reset();
        active.ep.commonConnect({ address: pair.passiveAddress, port: CONN_QUAL });
        (await passive.request()).accept(passive.ep);
        passive.ep.postRecv(passive.lmr.segment(0, 1), round);
        await active.expect('ESTABLISHED');
        active.lmr.bytes[0] = round;
        active.ep.postSend(active.lmr.segment(0, 1), round);
        await active.expect(`dto ${round} SUCCESS`);
        await passive.expect('ESTABLISHED', `dto ${round} SUCCESS`);
        assert.equal(passive.lmr.bytes[0], round);
        numbers.add(active.ep.qpn);
      }
      assert.equal(numbers.size, 11);
      psp.free();
    },
  );
});
