/** Send and receive, RDMA write and read: sizes, lists of segments, order, flags. */
import assert from 'node:assert/strict';
import { CompletionFlags, DatDto, type Ep, type Ia, type LmrSegment, MemPrivileges } from 'dapl';
import { type Claim, group } from '../behaviour.js';
import type { CompliancePair } from '../fixture.js';
import {
  assertAll,
  assertSameBytes,
  connected,
  expectQuiet,
  fillPattern,
  mtuBytes,
  type Peer,
  type Peers,
  refuses,
  textOf,
} from '../peer.js';

const { SUPPRESS, BARRIER_FENCE } = CompletionFlags;
const MIB = 1 << 20;
const GUARD = 64;

/** Sizes around the limits that decide how a message is split into packets. */
const SIZES: readonly (readonly [name: string, of: (ia: Ia) => number])[] = [
  ['0 bytes', () => 0],
  ['1 byte', () => 1],
  ['one byte less than the path MTU', (ia) => mtuBytes(ia) - 1],
  ['the path MTU', (ia) => mtuBytes(ia)],
  ['one byte more than the path MTU', (ia) => mtuBytes(ia) + 1],
  ['1 MiB and 3 bytes', () => MIB + 3],
];

async function roomy(pair: CompliancePair, lengthBytes: number): Promise<Peers> {
  const peers = await connected(pair, { lengthBytes: lengthBytes + 2 * GUARD });
  fillPattern(peers.active.lmr.bytes, 5);
  peers.passive.lmr.bytes.fill(0xee);
  return peers;
}

/** Asserts the bytes between the guards, and that the guards are unchanged. */
function assertArrived(to: Peer, from: Peer, lengthBytes: number): void {
  const { bytes } = to.lmr;
  const end = GUARD + lengthBytes;
  assertSameBytes(bytes.subarray(GUARD, end), from.lmr.bytes.subarray(GUARD, end));
  assertAll(bytes.subarray(0, GUARD), 0xee);
  assertAll(bytes.subarray(end), 0xee);
}

export const transferring = group('Transferring', (claim) => {
  const reading: Claim = (name, run) => claim(name, run, ['rdma-read']);
  for (const [name, of] of SIZES) {
    claim(`send and receive: ${name}`, async (pair) => {
      const size = of(pair.active);
      const { active, passive } = await roomy(pair, size);
      passive.ep.postRecv(passive.lmr.segment(GUARD, size), 1);
      active.ep.postSend(active.lmr.segment(GUARD, size), 2);
      const [received] = await passive.expect('dto 1 SUCCESS');
      assert.ok(received?.type === 'dto');
      assert.equal(received.transferredLength, size);
      await active.expect('dto 2 SUCCESS');
      assertArrived(passive, active, size);
    });

    claim(`RDMA write: ${name}`, async (pair) => {
      const size = of(pair.active);
      const peers = await roomy(pair, size);
      const { active, passive } = peers;
      active.ep.postRdmaWrite(active.lmr.segment(GUARD, size), 1, passive.remote(GUARD));
      const [done] = await active.expect('dto 1 SUCCESS');
      assert.ok(done?.type === 'dto');
      assert.equal(done.transferredLength, size);
      assertArrived(passive, active, size);
      await expectQuiet(peers);
    });

    reading(`RDMA read: ${name}`, async (pair) => {
      const size = of(pair.active);
      const peers = await roomy(pair, size);
      const { active, passive } = peers;
      passive.ep.postRdmaRead(passive.lmr.segment(GUARD, size), 1, active.remote(GUARD));
      const [done] = await passive.expect('dto 1 SUCCESS');
      assert.ok(done?.type === 'dto');
      assert.equal(done.transferredLength, size);
      assertArrived(passive, active, size);
      await expectQuiet(peers);
    });
  }

  readToRmr(reading);
  segments(claim, reading);
  widest(claim, reading);
  order(claim, reading);
  flags(claim, reading);
});

function readToRmr(claim: Claim): void {
  claim('RDMA read to an RMR: the sink is named by a remote context of our own', async (pair) => {
    const { active, passive } = await roomy(pair, 4096);
    const { address, rmrContext = 0 } = passive.lmr;
    const sink = { address: address + BigInt(GUARD), rmrContext, lengthBytes: 4096 };
    passive.ep.postRdmaReadToRmr(sink, 1, active.remote(GUARD));
    const [done] = await passive.expect('dto 1 SUCCESS');
    assert.ok(done?.type === 'dto' && done.operation === DatDto.RDMA_READ);
    assert.equal(done.transferredLength, 4096);
    assertArrived(passive, active, 4096);
  });

  claim('RDMA read to an RMR: a sink that is not ours, or too long, is refused', async (pair) => {
    const { active, passive } = await roomy(pair, 4096);
    const { ep, lmr } = passive;
    const from = active.remote();
    const { address, rmrContext = 0, lengthBytes } = lmr;
    const end = address + BigInt(lengthBytes);
    for (const sink of [
      { address, rmrContext: rmrContext ^ 1, lengthBytes: 8 },
      { address, rmrContext, lengthBytes: lengthBytes + 1 },
      { address: end, rmrContext, lengthBytes: 1 },
      { address: end + 1n, rmrContext, lengthBytes: 0 },
      { address: address - 1n, rmrContext, lengthBytes: 1 },
      { address: -1n, rmrContext, lengthBytes: 1 },
    ]) {
      refuses(() => ep.postRdmaReadToRmr(sink, 1, from), 'DAT_INVALID_ARG2');
    }
    const { LOCAL_READ, REMOTE_READ } = MemPrivileges;
    const privileges = LOCAL_READ | REMOTE_READ;
    const readOnly = passive.ia.allocate(8, { pz: passive.pz, privileges });
    const sink = {
      address: readOnly.address,
      rmrContext: readOnly.rmrContext ?? 0,
      lengthBytes: 8,
    };
    refuses(() => ep.postRdmaReadToRmr(sink, 1, from), 'DAT_PRIVILEGES_WRITE');
    readOnly.free();
    refuses(() => ep.postRdmaReadToRmr(sink, 1, from), 'DAT_INVALID_ARG2');
    ep.postRdmaReadToRmr({ address: end, rmrContext, lengthBytes: 0 }, 2, from);
    await passive.expect('dto 2 SUCCESS');
  });
}

/**
 * Three segments of 100, 0 and 2000 bytes, neither adjacent nor in order. If the adapter allows
 * only two, the first and the last; if one, a segment of 2100 bytes.
 */
function parts(peer: Peer): LmrSegment[] {
  const { lmr, ep } = peer;
  const { maxRecvIov, maxRequestIov, maxRdmaReadIov, maxRdmaWriteIov } = ep.attributes;
  const most = Math.min(maxRecvIov, maxRequestIov, maxRdmaReadIov, maxRdmaWriteIov);
  if (most < 2) return [lmr.segment(1000, 2100)];
  const middle = most < 3 ? [] : [lmr.segment(9, 0)];
  return [lmr.segment(5000, 100), ...middle, lmr.segment(1000, 2000)];
}

function contents(segmentsOf: readonly LmrSegment[]): Uint8Array {
  return Buffer.concat(segmentsOf.map(({ bytes }) => bytes));
}

function segments(claim: Claim, reading: Claim): void {
  claim('several segments: send gathers, receive scatters', async (pair) => {
    const { active, passive } = await roomy(pair, 8192);
    passive.ep.postRecv(parts(passive), 1);
    active.ep.postSend(parts(active), 2);
    await passive.expect('dto 1 SUCCESS');
    assertSameBytes(contents(parts(passive)), contents(parts(active)));
  });

  claim('several segments: RDMA write gathers', async (pair) => {
    const { active, passive } = await roomy(pair, 8192);
    active.ep.postRdmaWrite(parts(active), 1, passive.remote(100));
    await active.expect('dto 1 SUCCESS');
    assertSameBytes(passive.lmr.bytes.subarray(100, 2200), contents(parts(active)));
  });

  reading('several segments: RDMA read scatters', async (pair) => {
    const { active, passive } = await roomy(pair, 8192);
    fillPattern(passive.lmr.bytes, 6);
    active.ep.postRdmaRead(parts(active), 2, passive.remote(100));
    await active.expect('dto 2 SUCCESS');
    assertSameBytes(contents(parts(active)), passive.lmr.bytes.subarray(100, 2200));
  });

  claim(
    'several segments: a message shorter than the receive fills the first ones',
    async (pair) => {
      const { active, passive } = await roomy(pair, 8192);
      passive.ep.postRecv(parts(passive), 1);
      active.ep.postSend(active.lmr.segment(0, 101), 2);
      await passive.expect('dto 1 SUCCESS');
      const filled = contents(parts(passive));
      assertSameBytes(filled.subarray(0, 101), active.lmr.bytes.subarray(0, 101));
      assertAll(filled.subarray(101), 0xee);
    },
  );
}

/** Segments of a region with different lengths: 10 bytes, 11, 12 ... */
function list({ lmr }: Peer, count: number): LmrSegment[] {
  return Array.from({ length: count }, (_, i) => lmr.segment(300 * i, 10 + i));
}

/** Each operation with as many segments as the adapter allows. */
function widest(claim: Claim, reading: Claim): void {
  const roomFor = (count: number): number => 310 * count + 310;

  claim("several segments: as many as the adapter's limit: send and RDMA write", async (pair) => {
    const { maxIovSegmentsPerDto: most, maxIovSegmentsPerRdmaWrite: gathered } =
      pair.active.query().ia;
    const attributes = { maxRequestIov: 1, maxRecvIov: most, maxRdmaWriteIov: gathered };
    const lengthBytes = 2 * roomFor(Math.max(most, gathered));
    const { active, passive } = await connected(pair, { attributes, lengthBytes });
    fillPattern(active.lmr.bytes, 8);
    const source = list(active, gathered);
    active.ep.postRdmaWrite(source, 1, passive.remote(roomFor(most)));
    await active.expect('dto 1 SUCCESS');
    const sent = contents(source);
    const end = roomFor(most) + sent.length;
    assertSameBytes(passive.lmr.bytes.subarray(roomFor(most), end), sent);
    const receive = list(passive, most);
    const { length } = contents(receive);
    passive.ep.postRecv(receive, 3);
    active.ep.postSend(active.lmr.segment(0, length), 4);
    await passive.expect('dto 3 SUCCESS');
    await active.expect('dto 4 SUCCESS');
    assertSameBytes(contents(receive), active.lmr.bytes.subarray(0, length));
    refuses(() => active.ep.postSend(list(active, 2), 5), 'DAT_INVALID_ARG2');
    const tooMany = list(active, gathered + 1);
    refuses(() => active.ep.postRdmaWrite(tooMany, 5, passive.remote()), 'DAT_INVALID_ARG2');
  });

  reading("several segments: as many as the adapter's limit: RDMA read", async (pair) => {
    const { maxIovSegmentsPerRdmaRead: scattered } = pair.active.query().ia;
    const attributes = { maxRdmaReadIov: scattered };
    const lengthBytes = roomFor(scattered + 1);
    const { active, passive } = await connected(pair, { attributes, lengthBytes });
    fillPattern(active.lmr.bytes, 8);
    const sink = list(passive, scattered);
    passive.ep.postRdmaRead(sink, 2, active.remote());
    await passive.expect('dto 2 SUCCESS');
    const { length } = contents(sink);
    assertSameBytes(contents(sink), active.lmr.bytes.subarray(0, length));
    const tooMany = list(passive, scattered + 1);
    refuses(() => passive.ep.postRdmaRead(tooMany, 3, active.remote()), 'DAT_INVALID_ARG2');
  });
}

function order(claim: Claim, reading: Claim): void {
  claim('a send behind a write: the written bytes are there with the receive', async (pair) => {
    const { active, passive } = await roomy(pair, MIB);
    passive.ep.postRecv([], 1);
    active.ep.postRdmaWrite(active.lmr.segment(GUARD, MIB), 1, passive.remote(GUARD), SUPPRESS);
    active.ep.postSend([], 2);
    await passive.expect('dto 1 SUCCESS');
    assertArrived(passive, active, MIB);
  });

  reading('a read behind a write sees what was written', async (pair) => {
    const { active, passive } = await roomy(pair, 8192);
    active.ep.postRdmaWrite(active.lmr.segment(0, 4000), 1, passive.remote());
    active.ep.postRdmaRead(active.lmr.segment(4096, 4000), 2, passive.remote());
    await active.expect('dto 1 SUCCESS', 'dto 2 SUCCESS');
    assertSameBytes(active.lmr.bytes.subarray(4096, 8096), active.lmr.bytes.subarray(0, 4000));
  });

  reading('completions come in the order of posting, whatever was posted', async (pair) => {
    const { active, passive } = await roomy(pair, 65_536);
    const posts = [
      (ep: Ep, i: number) => ep.postSend(active.lmr.segment(0, 10 + i), i),
      (ep: Ep, i: number) => ep.postRdmaWrite(active.lmr.segment(0, 5000), i, passive.remote()),
      (ep: Ep, i: number) => ep.postRdmaRead(active.lmr.segment(8192, 5000), i, passive.remote()),
    ];
    const count = 99;
    const cookies = Array.from({ length: count }, (_, i) => i);
    const received = cookies.filter((i) => i % 3 === 0);
    for (const i of received) passive.ep.postRecv(passive.lmr.segment(), i);
    for (const i of cookies) posts[i % 3]?.(active.ep, i);
    await active.expect(...cookies.map((i) => `dto ${i} SUCCESS`));
    const events = await passive.expect(...received.map((i) => `dto ${i} SUCCESS`));
    assert.deepEqual(
      events.map((event) => (event.type === 'dto' ? event.transferredLength : -1)),
      received.map((i) => 10 + i),
    );
  });

  claim('messages fill receives in the order in which both were posted', async (pair) => {
    const { active, passive } = await roomy(pair, 8192);
    for (let i = 0; i < 50; i++) passive.ep.postRecv(passive.lmr.segment(i, 1), i);
    for (let i = 0; i < 50; i++) {
      active.lmr.bytes[i] = 100 + i;
      active.ep.postSend(active.lmr.segment(i, 1), i);
    }
    await passive.until('dto 49 SUCCESS');
    for (let i = 0; i < 50; i++) assert.equal(passive.lmr.bytes[i], 100 + i);
  });

  claim('both directions at once', async (pair) => {
    const peers = await roomy(pair, MIB);
    const { active, passive } = peers;
    const ways = [
      [active, passive],
      [passive, active],
    ] as const;
    for (const [to] of ways) to.ep.postRecv([], 1);
    for (const [from, to] of ways) {
      for (let i = 0; i < 8; i++) {
        from.ep.postRdmaWrite(from.lmr.segment(0, 300_000), 2, to.remote(524_288), SUPPRESS);
      }
      from.ep.postSend([], 3);
    }
    for (const [from] of ways) {
      const seen = [await from.next(), await from.next()].map(textOf);
      assert.deepEqual(seen.sort(), ['dto 1 SUCCESS', 'dto 3 SUCCESS']);
    }
    for (const [from, to] of ways) {
      const arrived = to.lmr.bytes.subarray(524_288, 824_288);
      assertSameBytes(arrived, from.lmr.bytes.subarray(0, 300_000));
    }
  });
}

function flags(claim: Claim, reading: Claim): void {
  claim('SUPPRESS: no event for a success; a later request shows', async (pair) => {
    const peers = await roomy(pair, 8192);
    const { active, passive } = peers;
    for (let i = 0; i < 300; i++) {
      if (active.ep.requestsFree < 2) {
        active.ep.postRdmaWrite([], 1000, passive.remote());
        await active.expect('dto 1000 SUCCESS');
      }
      active.ep.postRdmaWrite(active.lmr.segment(0, 8), i, passive.remote(), SUPPRESS);
    }
    active.ep.postRdmaWrite([], 2000, passive.remote());
    await active.expect('dto 2000 SUCCESS');
    await expectQuiet(peers);
  });

  claim('SUPPRESS: a failure shows all the same', async (pair) => {
    const { active, passive } = await roomy(pair, 8192);
    const { address } = passive.remote();
    active.ep.postRdmaWrite(active.lmr.segment(0, 8), 7, { address, rmrContext: 1 }, SUPPRESS);
    await active.expect('dto 7 REMOTE_ACCESS', 'BROKEN');
  });

  reading('BARRIER_FENCE: a send behind a read takes the bytes that were read', async (pair) => {
    const { active, passive } = await roomy(pair, 300_000);
    passive.lmr.bytes.fill(0x5a, 0, 200_000);
    passive.ep.postRecv(passive.lmr.segment(250_000, 8), 1);
    active.ep.postRdmaRead(active.lmr.segment(0, 200_000), 1, passive.remote());
    active.ep.postSend(active.lmr.segment(199_990, 8), 2, BARRIER_FENCE);
    await active.expect('dto 1 SUCCESS', 'dto 2 SUCCESS');
    await passive.expect('dto 1 SUCCESS');
    assertAll(passive.lmr.bytes.subarray(250_000, 250_008), 0x5a);
  });

  claim('a cookie of 2^53 - 1 comes back', async (pair) => {
    const { active, passive } = await connected(pair);
    active.ep.postRdmaWrite([], Number.MAX_SAFE_INTEGER, passive.remote());
    await active.expect(`dto ${Number.MAX_SAFE_INTEGER} SUCCESS`);
  });

  claim('a burst leaves and completes as if posted one by one', async (pair) => {
    const { active, passive } = await connected(pair);
    active.ep.burst(() => {
      for (let i = 0; i < 10; i++) {
        active.ep.postRdmaWrite(active.lmr.segment(i, 1), i, passive.remote(i));
      }
    });
    await active.until('dto 9 SUCCESS');
  });
}
