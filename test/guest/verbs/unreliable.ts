/** UC: what arrives, and what is lost without a word. UD: datagrams of every length. */
import assert from 'node:assert/strict';

import { Access, GRH_LENGTH, QpType, WrFlags, WrOpcode } from '../../../core/spi/index.js';
import type { ManualEnd, Pair, Region } from './end.js';
import { connectPair, type Ends } from './manual-pair.js';
import { digestOf, fillPattern } from './pattern.js';
import { type ExpectedPackets, noPackets, type Planned, playRound } from './round.js';

const { RDMA_WRITE, RDMA_WRITE_WITH_IMM, SEND, SEND_WITH_IMM } = WrOpcode;
const { SIGNALED, SOLICITED } = WrFlags;
const { LOCAL_WRITE, REMOTE_WRITE } = Access;
/** The first bits of an opcode say the kind of connection. IBTA 9.2.1. */
export const UC_PREFIX = 0x20;
const LONG_BYTES = (1 << 16) + 3;

const messages: readonly Planned[] = [
  { opcode: SEND },
  { opcode: SEND_WITH_IMM, immediate: 0xdeadbeef },
  { opcode: RDMA_WRITE },
  { opcode: SEND, flags: SIGNALED | SOLICITED, pieces: 3 },
  { opcode: RDMA_WRITE_WITH_IMM, immediate: 0x01020304, pieces: 2 },
];

/** Returns what the requester must have sent on its UC queue pair, without the prefix of UC. */
export async function playUc(ends: Ends, mtuBytes: number): Promise<ExpectedPackets> {
  const pairs = await connectPair(ends, { type: QpType.UC, mtuBytes });
  const expected = noPackets();
  const { requester, responder } = ends;
  const options = {
    requester: { end: requester.end, pair: pairs.requester },
    responder: { end: responder.end, pair: pairs.responder },
    domains: { requester: requester.domain, responder: responder.domain },
  };
  for (const lengthBytes of [0, 1, mtuBytes - 1, mtuBytes, mtuBytes + 1, LONG_BYTES]) {
    await playRound({ ...options, mtuBytes, lengthBytes, expected }, messages);
  }
  await playLost(ends, pairs.requester, pairs.responder);
  return expected;
}

/** Nothing tells the sender; the next good message takes the receive. */
async function playLost(ends: Ends, from: Pair, to: Pair): Promise<void> {
  const [asks, answers] = [ends.requester.end, ends.responder.end];
  const local = await asks.region(ends.requester.domain, 64, LOCAL_WRITE);
  const target = await answers.region(ends.responder.domain, 64, LOCAL_WRITE | REMOTE_WRITE);
  const segments = [{ region: local, offset: 0, length: 48 }];
  const bad = { remoteAddress: target.address, rkey: (target.rkey ^ 0x5a5a5a5a) >>> 0 };
  await asks.send(from, { opcode: SEND, wr: 1, segments });
  await asks.send(from, { opcode: RDMA_WRITE, wr: 2, segments, ...bad });
  await asks.post(from);
  const { sends } = await asks.poll(from, 2, 0);
  // The peer has to have had both before it gets a receive.
  const early = await answers.poll(to, 0, 1, LOST_MS);
  assert.deepEqual(early.receives, [], 'UC receives');
  await answers.receive(to, 3, [{ region: target, offset: 0, length: 64 }]);
  await asks.send(from, { opcode: SEND_WITH_IMM, wr: 4, segments, immediate: 4 });
  await asks.post(from);
  const after = await asks.poll(from, 1, 0);
  const { receives } = await answers.poll(to, 0, 1);
  const all = [...sends, ...after.sends].map(({ wr, status }) => [wr, status]);
  assert.deepEqual(
    all,
    [1, 2, 4].map((wr) => [wr, 'SUCCESS']),
    'UC sends',
  );
  const arrived = receives.map(({ wr, status, immediate }) => [wr, status, immediate]);
  assert.deepEqual(arrived, [[3, 'SUCCESS', 4]], 'what arrives after what was lost');
  assert.equal(await answers.state(to), 'RTS');
}

/** How long one waits for what must not come. */
const LOST_MS = 300;
const QKEY = 0x11223344;

interface DatagramSide {
  readonly end: ManualEnd;
  readonly pair: Pair;
  readonly region: Region;
}

/** Datagrams of the requester to the responder; what must not arrive comes in between. */
export async function playUd(ends: Ends, mtuBytes: number): Promise<void> {
  const slot = GRH_LENGTH + mtuBytes;
  const sizes = [0, 1, 100, mtuBytes - 1, mtuBytes];
  const open = async ({ end, domain }: Ends['requester']): Promise<DatagramSide> => {
    const pair = await end.queuePair(domain, QpType.UD, { depth: 32, segments: 2, inlineBytes: 0 });
    await end.datagrams(pair, QKEY, 0xffffff);
    return { end, pair, region: await end.region(domain, slot * sizes.length * 2, LOCAL_WRITE) };
  };
  const from = await open(ends.requester);
  const to = await open(ends.responder);
  const handle = await from.end.handle(ends.requester.domain, to.end.address);
  await from.end.fill({ region: from.region, offset: 0, length: mtuBytes }, 9);
  const pattern = new Uint8Array(mtuBytes);
  fillPattern(pattern, 9);
  const expected: unknown[] = [];
  let index = 0;
  for (const length of sizes) {
    for (const immediate of [undefined, 0xa0b0c0d0 + length]) {
      const place = { region: to.region, offset: slot * index, length: GRH_LENGTH + length };
      await to.end.receive(to.pair, index, [place]);
      const datagram = { handle, qpn: to.pair.qpn, qkey: QKEY };
      const segments = length === 0 ? [] : [{ region: from.region, offset: 0, length }];
      const opcode = immediate === undefined ? SEND : SEND_WITH_IMM;
      const request = { opcode, segments, ...(immediate !== undefined && { immediate }) };
      // Wrong key: nobody may notice.
      const stranger = { ...datagram, qkey: QKEY ^ 1 };
      await from.end.send(from.pair, { ...request, wr: 100 + index, datagram: stranger });
      await from.end.send(from.pair, { ...request, wr: index, datagram });
      const bytes = GRH_LENGTH + length;
      const arrived = { wr: index, status: 'SUCCESS', opcode: 'RECV', bytes };
      expected.push({ ...arrived, immediate, sourceQpn: from.pair.qpn });
      index += 1;
    }
  }
  await from.end.post(from.pair);
  const { sends } = await from.end.poll(from.pair, 2 * index, 0);
  assert.deepEqual([...new Set(sends.map(({ status }) => status))], ['SUCCESS'], 'UD sends');
  const { receives } = await to.end.poll(to.pair, 0, index);
  assert.deepEqual(receives, expected, 'UD receives');
  for (const [at, length] of sizes.flatMap((size) => [size, size]).entries()) {
    const offset = slot * at + GRH_LENGTH;
    const digest = await to.end.digest({ region: to.region, offset, length });
    assert.equal(digest, digestOf(pattern.subarray(0, length)), `datagram ${at}`);
  }
}
