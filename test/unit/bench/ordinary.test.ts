// The benchmark of ordinary machines: it shows what is planted, and judges by its goals.

import assert from 'node:assert/strict';
import { settle } from '../../../bench/compare/settle.js';
import { PROGRAMS } from '../../../bench/ordinary/programs.js';
import { record } from '../../../bench/ordinary/report.js';
import { ROWS, shortRows } from '../../../bench/ordinary/rows.js';
import type { Result } from '../../../bench/ordinary/run.js';
import { type Sample, Team } from '../../../bench/ordinary/team.js';
import { control, verdictsOf } from '../../../bench/ordinary/verdicts.js';
import { loopback } from '../../support/loopback.js';

const ASK = ROWS[0]!;
const SECONDS = 0.3;
/** A server's delay of 2 ms, as the worker plants it. */
const PLANTED_US = 2000;

async function measured(network: number, plant: string): Promise<Sample> {
  const client = { address: loopback(network, 1) };
  const server = { address: loopback(network, 2) };
  const team = await Team.open('tcp', { client, server }, plant);
  try {
    await team.start(ASK.job);
    await team.warm(SECONDS);
    return await team.measure(SECONDS);
  } finally {
    team.kill();
  }
}

const SAMPLE: Sample = {
  ...{ messages: 1, mean: 100, p50: 100, p99: 100, cpu: 100, voluntary: 2, involuntary: 0 },
  ...{ turns: 2, emptyTurns: 0, polls: 'no', bytesPerSecond: 1 },
};

function result(program: string, mean: readonly number[], more: Partial<Result> = {}): Result {
  const samples = mean.map((each) => ({ ...SAMPLE, mean: each }));
  return { place: 'idle', group: 'idle', row: ASK.label, program, samples, ...more };
}

describe('bench: ordinary', function () {
  this.timeout(180_000);

  it('shows a planted sleep as time, a spin as CPU, a wake-up as a turn and a switch', async () => {
    const plain = await measured(90, '');
    assert.ok(plain.turns > 1.5 && plain.turns < 3, `${plain.turns} turns`);
    assert.equal(plain.polls, 'no');

    const asleep = await measured(91, 'sleep');
    assert.ok(asleep.p50 >= PLANTED_US * 0.9, `${asleep.p50} us`);

    const spinning = await measured(92, 'spin');
    assert.ok(spinning.p50 >= PLANTED_US * 0.9, `${spinning.p50} us`);
    assert.ok(spinning.cpu >= PLANTED_US * 0.5, `${spinning.cpu} us of CPU`);
    assert.ok(spinning.cpu > asleep.cpu, `${spinning.cpu} and ${asleep.cpu} us of CPU`);

    const woken = await measured(93, 'wake-up');
    assert.ok(woken.turns >= plain.turns + 0.8, `${woken.turns} and ${plain.turns} turns`);
    const [more, few] = [woken.voluntary, plain.voluntary];
    assert.ok(more >= few + 0.8, `${more} and ${few} switches`);
  });

  it('has the turns of our devices that nothing asked for', async () => {
    const client = { address: loopback(94, 1) };
    const server = { address: loopback(94, 2) };
    const team = await Team.open('dat-shm', { client, server });
    try {
      await team.start(ASK.job);
      const { emptyTurns, messages } = await team.measure(SECONDS);
      assert.ok(emptyTurns >= 0 && messages > 0, `${emptyTurns}`);
    } finally {
      team.kill();
    }
  });

  it('warms up until three windows in a row agree within 10 %', async () => {
    const windows = [100, 50, 20, 10, 10.5, 9.9, 50];
    const settling = await settle(async () => windows.shift()!, 60);
    assert.equal(settling.settled, true);
    assert.deepEqual(windows, [50]);
    let next = 1;
    const never = await settle(async () => (next = 3 - next), 0.01);
    assert.equal(never.settled, false);
  });

  it('judges the median of the rounds, and nothing that has not settled', () => {
    const ours = result('easy-shm', [40, 60, 45]);
    const tcp = result('tcp', [100, 100, 100]);
    const [mean] = verdictsOf([ours, tcp], ours);
    assert.deepEqual([mean?.value, mean?.met], [0.45, true]);
    const slow = result('easy-shm', [40, 60, 55]);
    assert.equal(verdictsOf([slow, tcp], slow)[0]?.met, false);
    const cold = { ...ours, settling: { seconds: 8, settled: false } };
    assert.deepEqual(verdictsOf([cold, tcp], cold), []);
  });

  it('does not measure where Node TCP differs from itself', () => {
    const row = 'Node TCP against itself';
    const beside = (mean: number): boolean =>
      control([result('tcp', [100], { row }), result('again', [mean], { row })], 'idle')
        .isMeasurable;
    assert.deepEqual([89, 91, 109, 111].map(beside), [false, true, true, false]);
  });

  it('has each program in a short row', () => {
    const programs = new Set(shortRows().flatMap((row) => Object.values(row.programs).flat()));
    const known = Object.keys(PROGRAMS).filter((each) => each !== 'again');
    assert.deepEqual([...programs].sort(), known.sort());
  });

  it('writes its tables between the marks of a page', () => {
    const run = {
      revision: 'abc',
      node: 'v20',
      machine: { cpu: 'a CPU', cpus: 2, arch: 'x64', kernel: '6' },
    };
    const page = 'before\n<!-- bench:ordinary -->\nold\n<!-- /bench:ordinary -->\nbehind\n';
    const once = record(page, 'new', run);
    assert.match(
      once,
      /^before\n<!-- bench:ordinary -->[^]*new[^]*<!-- \/bench:ordinary -->\nbehind\n$/,
    );
    assert.ok(!once.includes('old'));
    assert.equal(record(once, 'new', run), once);
    assert.throws(() => record('nothing', 'new', run), /marks|has no/);
  });
});
