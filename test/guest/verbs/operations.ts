/** Every operation of RC, in every class of lengths, by one requester to one responder. */
import assert from 'node:assert/strict';

import { Access, WrFlags, WrOpcode } from '../../../core/spi/index.js';
import { OPCODE } from '../roce.js';
import type { ConnectionWishes, Domain, Pair, VerbsEnd } from './end.js';
import { withoutFences } from './fences.js';
import {
  type ExpectedPackets,
  noPackets,
  type Planned,
  playRound,
  type RoundOptions,
} from './round.js';
import type { Party } from './scene.js';

const { LOCAL_WRITE, REMOTE_ATOMIC, REMOTE_WRITE, MW_BIND } = Access;
const { SEND, SEND_WITH_IMM, SEND_WITH_INV, RDMA_WRITE, RDMA_WRITE_WITH_IMM } = WrOpcode;
const { RDMA_READ, ATOMIC_CMP_AND_SWP, ATOMIC_FETCH_AND_ADD } = WrOpcode;
const { SIGNALED, SOLICITED, INLINE, FENCE } = WrFlags;
const COMPARE_SWAP = 0x13;
const FETCH_ADD = 0x14;
const LARGEST_BYTES = (1 << 20) + 3;
const INLINE_BYTES = 61;
const WINDOW_BYTES = 64;

export function wishesFor(mtuBytes: number): ConnectionWishes {
  const sizes = { depth: 64, segments: 4, inlineBytes: 64 };
  return { sizes, reads: 4, rnrRetryCount: 7, minRnrTimer: 12, mtuBytes };
}

/** Connects two ends by the connection manager; the requester is the one that asks. */
export async function connectEnds(
  requester: VerbsEnd,
  responder: VerbsEnd,
  to: { readonly address: string; readonly port: number },
  wishes: ConnectionWishes,
  domains: { readonly requester: Domain; readonly responder: Domain },
): Promise<[Pair, Pair]> {
  await responder.listen(to.port);
  return Promise.all([
    requester.dial(to.address, to.port, domains.requester, wishes),
    responder.accept(domains.responder, wishes),
  ]);
}

export interface OperationsOptions {
  readonly requester: Party;
  readonly responder: Party;
  readonly domains: { readonly requester: Domain; readonly responder: Domain };
  readonly mtuBytes: number;
  /** Whether the requester is asked for fences. */
  readonly fences: boolean;
}

/** Returns what must have been on the wire. */
export async function playOperations(options: OperationsOptions): Promise<ExpectedPackets> {
  const { fences, mtuBytes, requester } = options;
  const expected = noPackets();
  const sizes = [0, 1, mtuBytes - 1, mtuBytes, mtuBytes + 1, LARGEST_BYTES];
  for (const lengthBytes of sizes) {
    const round = { ...options, lengthBytes, expected };
    await playRound(round, fences ? messages : withoutFences(messages));
    await playInvalidation(round);
  }
  if (requester.end.dialect === 'verbs') {
    const inline = [SEND, SEND_WITH_IMM, RDMA_WRITE, RDMA_WRITE_WITH_IMM].map((opcode) => ({
      ...{ opcode, flags: SIGNALED | INLINE, pieces: 2 },
      ...(opcode === SEND || opcode === RDMA_WRITE ? {} : { immediate: opcode }),
    }));
    await playRound({ ...options, lengthBytes: INLINE_BYTES, expected }, inline);
  }
  await playAtomics(options, expected);
  await playBreak(options, expected);
  return expected;
}

/** At last a WRITE with a key that is none: it breaks the connection. */
async function playBreak(options: OperationsOptions, expected: ExpectedPackets): Promise<void> {
  const { requester, responder, domains } = options;
  const { end, pair } = requester;
  const source = await end.region(domains.requester, 8, LOCAL_WRITE);
  const target = await responder.end.region(domains.responder, 8, LOCAL_WRITE | REMOTE_WRITE);
  const segments = [{ region: source, offset: 0, length: 8 }];
  const remote = { remoteAddress: target.address, rkey: (target.rkey ^ 0x5a5a5a5a) >>> 0 };
  await end.send(pair, { opcode: RDMA_WRITE, wr: 1, segments, ...remote });
  await end.post(pair);
  const { sends } = await end.poll(pair, 1, 0);
  const status = end.dialect === 'dat' ? 'REMOTE_ACCESS' : 'REM_ACCESS_ERR';
  assert.deepEqual(
    sends.map((send) => [send.wr, send.status]),
    [[1, status]],
  );
  expected.requests.push(WRITE_ONLY);
}

const WRITE_ONLY = 0x0a;

/** Windows take the place of what invalidation is about in `playInvalidation`. */
const messages: readonly Planned[] = [
  { opcode: SEND },
  { opcode: SEND_WITH_IMM, immediate: 0xdeadbeef },
  { opcode: RDMA_WRITE },
  { opcode: SEND, flags: SIGNALED | SOLICITED },
  { opcode: RDMA_READ },
  { opcode: RDMA_WRITE_WITH_IMM, immediate: 0x01020304 },
  { opcode: SEND, pieces: 3 },
  { opcode: RDMA_READ, pieces: 3 },
  { opcode: RDMA_WRITE, pieces: 3, flags: SIGNALED | FENCE },
  { opcode: RDMA_WRITE_WITH_IMM, immediate: 0, pieces: 2, flags: SIGNALED | SOLICITED },
];

/** The responder opens a window, and the message shuts it. */
async function playInvalidation(options: RoundOptions): Promise<void> {
  const { responder, domains } = options;
  const { end, pair } = responder;
  const access = LOCAL_WRITE | REMOTE_WRITE | MW_BIND;
  const region = await end.region(domains.responder, WINDOW_BYTES, access);
  const window = await end.window(domains.responder);
  const segment = { region, offset: 0, length: WINDOW_BYTES };
  const key = await end.bind(pair, { wr: 900, window, segment, access: REMOTE_WRITE });
  await end.post(pair);
  const { sends } = await end.poll(pair, 1, 0);
  assert.deepEqual(
    sends.map(({ wr, status, opcode }) => ({ wr, status, opcode })),
    [{ wr: 900, status: 'SUCCESS', opcode: 'BIND_MW' }],
  );
  await playRound(options, [{ opcode: SEND_WITH_INV, immediate: key }]);
}

const FIRST = 0x1122334455667788n;
const ADDED = BigInt.asUintN(64, -20n);

/** Atomics on words of the responder; each brings back what was there before. */
async function playAtomics(options: OperationsOptions, expected: ExpectedPackets): Promise<void> {
  const { requester, responder, domains } = options;
  const { end, pair } = requester;
  const access = LOCAL_WRITE | REMOTE_ATOMIC;
  const target = await responder.end.region(domains.responder, 64, access);
  const result = await end.region(domains.requester, 64, LOCAL_WRITE);
  await responder.end.put(target, 8, 7n);
  await responder.end.put(target, 16, FIRST);
  const steps = [
    { opcode: ATOMIC_FETCH_AND_ADD, at: 8, compareAdd: 5n, old: 7n },
    { opcode: ATOMIC_FETCH_AND_ADD, at: 8, compareAdd: ADDED, old: 12n },
    { opcode: ATOMIC_CMP_AND_SWP, at: 16, compareAdd: 1n, swap: 2n, old: FIRST },
    { opcode: ATOMIC_CMP_AND_SWP, at: 16, compareAdd: FIRST, swap: ADDED, old: FIRST },
    { opcode: ATOMIC_CMP_AND_SWP, at: 16, compareAdd: ADDED, swap: FIRST, old: ADDED },
  ];
  for (const [wr, { opcode, at, compareAdd, swap = 0n }] of steps.entries()) {
    const segments = [{ region: result, offset: place(wr), length: 8 }];
    const remote = { remoteAddress: target.address + BigInt(at), rkey: target.rkey };
    await end.send(pair, { opcode, wr, segments, compareAdd, swap, ...remote });
    expected.requests.push(opcode === ATOMIC_CMP_AND_SWP ? COMPARE_SWAP : FETCH_ADD);
    expected.responses.push(OPCODE.ATOMIC_ACKNOWLEDGE);
  }
  await end.post(pair);
  const { sends } = await end.poll(pair, steps.length, 0);
  assert.deepEqual(
    sends.map(({ wr, status, opcode }) => ({ wr, status, opcode })),
    steps.map(({ opcode }, wr) => {
      const name = opcode === ATOMIC_CMP_AND_SWP ? 'COMP_SWAP' : 'FETCH_ADD';
      return { wr, status: 'SUCCESS', opcode: name };
    }),
  );
  for (const [wr, { old }] of steps.entries()) {
    assert.equal(await end.word(result, place(wr)), old, `what atomic ${wr} found`);
  }
  assert.equal(await responder.end.word(target, 8), BigInt.asUintN(64, 12n + ADDED), 'the sum');
  assert.equal(await responder.end.word(target, 16), FIRST, 'the swapped word');
}

/** Where the result of an atomic goes: not aligned. */
function place(wr: number): number {
  return wr * 10 + 3;
}
