/**
 * What the way from ring to libibverbs and back costs, over the fake one: nanoseconds per work
 * request in bursts of 32, the fake's own part included. Nothing is executed while the clock runs:
 * posting, carrying out and polling are told apart. The gate is 150 ns each.
 */
import { WcStatus, WrFlags, WrOpcode } from '../core/spi/wire/ib.js';
import { CQE, type Ring, RQE, SGE, SQE } from '../core/spi/layout/ring.js';
import { Mode } from '../test/fake-verbs/control.js';
import { Pair } from '../test/fake-verbs/pair.js';

const BURST = 32;
const GATE_NS = 150;
const ROUNDS = 40_000;
const WARM_UP = 4_000;

interface Case {
  readonly name: string;
  /** Writes one entry of a burst. */
  readonly write: (words: Uint32Array, at: number, index: number) => void;
  readonly receives: boolean;
}

class Samples {
  readonly values = new Float64Array(ROUNDS);
  /** Nanoseconds per request at a quantile of the bursts. */
  at(quantile: number): number {
    const sorted = this.values.slice().sort();
    return ((sorted[Math.floor(quantile * (ROUNDS - 1))] ?? NaN) * 1e6) / BURST;
  }
}

function run(pair: Pair, test: Case): Record<string, Samples> {
  const { a, b, queues } = pair;
  const sends = a.sendRing;
  const receives = b.receiveRing;
  if (receives === undefined) throw new TypeError('no receive ring');
  const names = ['write entries', 'doorbell', 'poll', 'read completions', 'post receives'] as const;
  const samples = Object.fromEntries(names.map((name) => [name, new Samples()]));
  for (let round = -WARM_UP; round < ROUNDS; round++) {
    const t0 = performance.now();
    if (test.receives) postReceives(receives, () => b.ringReceiveDoorbell());
    const t1 = performance.now();
    let index = sends.producer;
    for (let i = 0; i < BURST; i++, index++) test.write(sends.words, sends.wordOf(index), index);
    sends.producer = index;
    const t2 = performance.now();
    a.ringSendDoorbell();
    const t3 = performance.now();
    pair.progress();
    const t4 = performance.now();
    const readable = queues['send A'].poll();
    const t5 = performance.now();
    readAll(queues['send A'].ring, readable);
    const t6 = performance.now();
    if (test.receives) readAll(queues['receive B'].ring, queues['receive B'].poll());
    if (round < 0) continue;
    for (const [i, took] of [t2 - t1, t3 - t2, t5 - t4, t6 - t5, t1 - t0].entries()) {
      const sample = samples[names[i] ?? ''];
      if (sample) sample.values[round] = took;
    }
  }
  return samples;
}

function postReceives(ring: Ring, doorbell: () => void): void {
  let index = ring.producer;
  for (let i = 0; i < BURST; i++, index++) {
    const at = ring.wordOf(index);
    ring.words[at + RQE.NUM_SGE] = 0;
    ring.words[at + RQE.COOKIE_LO] = index;
  }
  ring.producer = index;
  doorbell();
}

/** As core does: status, index and context of each, then `consumer` once. */
function readAll(ring: Ring, readable: number): void {
  if (readable !== BURST) throw new Error(`${readable} completions instead of ${BURST}`);
  const { words } = ring;
  let index = ring.consumer;
  for (let i = 0; i < readable; i++, index++) {
    const at = ring.wordOf(index);
    const status = (words[at + CQE.CONTROL] ?? 0) & 0xff;
    const cookie = words[at + CQE.COOKIE_LO];
    if (status !== WcStatus.SUCCESS || cookie !== words[at + CQE.WQE_INDEX]) {
      throw new Error(`completion ${index}: status ${status}`);
    }
  }
  ring.consumer = index;
}

async function main(): Promise<void> {
  const pair = new Pair({
    mode: Mode.MANUAL,
    maxSendWr: 2 * BURST,
    maxReceiveWr: 2 * BURST,
    cqEntries: 2 * BURST,
  });
  const low = Number(pair.region.iova & 0xffffffffn);
  const high = Number(pair.region.iova >> 32n);
  const { lkey, rkey } = pair.region;
  const segment = (words: Uint32Array, at: number): void => {
    words[at + SQE.SEGMENTS + SGE.ADDRESS_LO] = low;
    words[at + SQE.SEGMENTS + SGE.ADDRESS_HI] = high;
    words[at + SQE.SEGMENTS + SGE.LENGTH] = 8;
    words[at + SQE.SEGMENTS + SGE.LKEY] = lkey;
  };
  const writeCase = (name: string, flags: number, isInline: boolean): Case => ({
    name,
    receives: false,
    write: (words, at, index) => {
      const count = isInline ? 0 : 1;
      words[at + SQE.CONTROL] = WrOpcode.RDMA_WRITE | (flags << 8) | (count << 16);
      words[at + SQE.INLINE_LENGTH] = isInline ? 8 : 0;
      words[at + SQE.COOKIE_LO] = index;
      words[at + SQE.COOKIE_HI] = 0;
      words[at + SQE.REMOTE_ADDRESS_LO] = low;
      words[at + SQE.REMOTE_ADDRESS_HI] = high;
      words[at + SQE.RKEY] = rkey;
      if (!isInline) segment(words, at);
    },
  });
  const cases: Case[] = [
    writeCase('write, one segment', WrFlags.SIGNALED, false),
    writeCase('write, inline', WrFlags.SIGNALED | WrFlags.INLINE, true),
    {
      name: 'send, no payload',
      receives: true,
      write: (words, at, index) => {
        words[at + SQE.CONTROL] = WrOpcode.SEND | (WrFlags.SIGNALED << 8);
        words[at + SQE.COOKIE_LO] = index;
        words[at + SQE.COOKIE_HI] = 0;
      },
    },
  ];
  console.log(`ns per request, bursts of ${BURST}, median (99th percentile) of ${ROUNDS}`);
  let worst = 0;
  for (const test of cases) {
    const samples = run(pair, test);
    console.log(test.name);
    for (const [part, sample] of Object.entries(samples)) {
      if (part === 'post receives' && !test.receives) continue;
      const figures = [0.5, 0.99].map((q) => sample.at(q).toFixed(1));
      console.log(`  ${part.padEnd(18)}${figures[0]?.padStart(7)} (${figures[1]})`);
    }
    const sum = (...parts: string[]): number =>
      parts.reduce((total, part) => total + (samples[part]?.at(0.5) ?? NaN), 0);
    const posted = sum('write entries', 'doorbell');
    const completed = sum('poll', 'read completions');
    worst = Math.max(worst, posted, completed);
    console.log(`  posted ${posted.toFixed(1)}, completed ${completed.toFixed(1)}`);
  }
  await pair.close();
  console.log(`gate ${GATE_NS} ns: ${worst <= GATE_NS ? 'held' : 'MISSED'} (${worst.toFixed(1)})`);
  if (!(worst <= GATE_NS)) process.exitCode = 1;
}

await main();
