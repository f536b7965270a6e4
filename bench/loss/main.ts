/**
 * Goodput where packets are lost, in the simulator's virtual time: the same seed gives the same
 * numbers on every machine. Beside them stand the models of bench/loss/models.ts.
 *
 *   npm run bench:loss -- [--seed N] [--json FILE]
 *
 * `--loopback` confirms one point of the curve over real sockets, in real time.
 */
import { writeFile } from 'node:fs/promises';
import { pathToFileURL } from 'node:url';
import { Command, InvalidArgumentError } from 'commander';
import { loopbackLoss, type LoopbackPoint, SLOW_LINK } from './loopback.js';
import { goBackN, goBackNReads, pipePackets, reno, selectiveRepeat } from './models.js';
import {
  LINK,
  longPath,
  randomLoss,
  type RandomLoss,
  recoveryUs,
  sharedBottleneck,
} from './scenarios.js';

const LOSSES = [0, 0.01, 0.1, 1, 5];
const FLOWS = [1, 2, 4, 8, 16, 32, 64];
const OUTAGES_US = [1000, 10_000, 100_000, 1_000_000];
const LOSS_US = 300_000;
const ROUND_TRIPS_MS = [4, 10, 40, 80];
const LONG_PATH_US = 3_000_000;
const SHARE_US = 100_000;
/** A shallow queue for a 10 Gbit/s port: 2 MiB is what a switch shares among 32 of them. */
const QUEUE_BYTES = 256 << 10;

/** Of a READ that shares a window of what fits the link with three more. */
const CHUNK_PACKETS = 4;
/** Of the point on loopback: rounds, the time of each, and how far it may be off. */
const ROUNDS = 3;
const ROUND_MS = 8000;
const TOLERANCE = 0.15;
const OPERATION_NAMES = ['SEND', 'WRITE', 'READ'] as const;

type Table = readonly (readonly string[])[];

const percent = (value: number): string => (value * 100).toFixed(1);

function lossTable(seed: number): Table {
  const rows = LOSSES.map((lossPercent) => {
    const loss = lossPercent / 100;
    const measured = OPERATION_NAMES.map((operation) =>
      randomLoss(lossPercent, seed, LOSS_US, operation),
    );
    const [send, write, read] = measured as [RandomLoss, RandomLoss, RandomLoss];
    const ideal = goBackN(loss, LINK);
    return [
      String(lossPercent),
      ...measured.map(({ goodput }) => percent(goodput)),
      percent(ideal),
      percent(goBackNReads(loss, CHUNK_PACKETS, LINK)),
      percent(selectiveRepeat(loss)),
      percent(loss === 0 ? 1 : reno(loss, LINK)),
      ...[send, write, read].map(({ goodput }) => (goodput / ideal).toFixed(2)),
      percent(write.sentTwice),
      String(measured.reduce((sum, { timeouts }) => sum + timeouts, 0)),
    ];
  });
  const models = ['go-back-N', 'of READs', 'selective', 'Reno'];
  const ratios = OPERATION_NAMES.map((name) => `${name} / go-back-N`);
  const heads = ['loss %', ...OPERATION_NAMES, ...models, ...ratios];
  return [[...heads, 'WRITEs sent again %', 'timeouts'], ...rows];
}

function longPathTable(seed: number): Table {
  const rows = ROUND_TRIPS_MS.map((ms) => {
    const path = longPath(ms * 1000);
    const measured = OPERATION_NAMES.map((operation) =>
      randomLoss(0, seed, LONG_PATH_US, operation, path),
    );
    return [
      String(ms),
      ...measured.map(({ goodput }) => percent(goodput)),
      // Slightly negative when more was on its way as the measurement began than when it ended.
      percent(Math.max(0, measured[1]!.sentTwice)),
    ];
  });
  return [['round trip ms', ...OPERATION_NAMES, 'WRITEs sent again %'], ...rows];
}

/** A busy machine takes turns from either end: the best round says what the protocol does. */
async function confirmOnLoopback(lossPercent: number, seed: number): Promise<Table> {
  const virtual = randomLoss(lossPercent, seed, ROUND_MS * 1000, 'WRITE', SLOW_LINK);
  const rounds: LoopbackPoint[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    rounds.push(await loopbackLoss(lossPercent, seed + 2 * round, ROUND_MS));
  }
  const best = Math.max(...rounds.map(({ goodput }) => goodput));
  const ratio = best / virtual.goodput;
  const confirmed = ratio >= 1 - TOLERANCE && ratio <= 1 + TOLERANCE;
  if (!confirmed) process.exitCode = 1;
  const row = (name: string, { goodput, sentTwice, timeouts }: RandomLoss): string[] => [
    name,
    percent(goodput),
    percent(sentTwice),
    String(timeouts),
    (goodput / virtual.goodput).toFixed(2),
  ];
  return [
    [`${lossPercent} % lost`, 'goodput %', 'sent again %', 'timeouts', '/ virtual time'],
    row('virtual time', virtual),
    ...rounds.map((point, i) => row(`loopback ${i + 1}`, point)),
    [confirmed ? 'confirmed' : 'NOT confirmed', `within ${percent(TOLERANCE)} %`, '', '', ''],
  ];
}

function sharingTable(seed: number, incast: boolean): Table {
  const heads = ['flows', 'goodput %', 'busy %', 'Jain', 'dropped', 'failed'];
  const rows = FLOWS.map((flows) => {
    const s = sharedBottleneck(flows, QUEUE_BYTES, seed, SHARE_US, incast);
    return [
      String(flows),
      (s.goodput * 100).toFixed(1),
      (s.utilisation * 100).toFixed(1),
      s.fairness.toFixed(3),
      String(s.dropped),
      String(s.failed),
    ];
  });
  return [heads, ...rows];
}

function recoveryTable(seed: number): Table {
  const rows = OUTAGES_US.map((us) => [
    String(us / 1000),
    (recoveryUs(us, seed) / 1000).toFixed(2),
  ]);
  return [['outage ms', 'first completion after, ms'], ...rows];
}

function text(table: Table): string {
  const widths = table[0]!.map((_, column) => Math.max(...table.map((row) => row[column]!.length)));
  return table.map((row) => row.map((cell, i) => cell.padStart(widths[i]!)).join('  ')).join('\n');
}

/** A percentage, 0.01 to 50. */
function share(value: string): number {
  const number = Number(value);
  if (number >= 0.01 && number <= 50) return number;
  throw new InvalidArgumentError('a percentage from 0.01 to 50 is due.');
}

function whole(value: string): number {
  const number = Number(value);
  if (Number.isSafeInteger(number) && number >= 0) return number;
  throw new InvalidArgumentError('an integer from 0 on is due.');
}

interface Arguments {
  readonly seed: number;
  readonly json?: string;
  /** `true` without a percentage. */
  readonly loopback?: number | true;
}

async function main(): Promise<void> {
  const program = new Command('bench:loss')
    .description('goodput where packets are lost, in virtual time')
    .option('--seed <n>', 'decides which packets are lost', whole, 1)
    .option('--loopback [percent]', 'one point of the curve over real sockets, in real time', share)
    .option('--json <file>', 'writes all tables')
    .parse();
  const { seed, json, loopback } = program.opts<Arguments>();
  const curve: Readonly<Record<string, () => Table>> = {
    [`one flow, 10 Gbit/s, 100 us, ${pipePackets(LINK).toFixed(1)} packets of 4 KiB`]: () =>
      lossTable(seed),
    'one flow, 100 Mbit/s, nothing lost: a path longer than thought': () => longPathTable(seed),
    'flows that share a switch port with a queue of 256 KiB': () => sharingTable(seed, false),
    'the same, all at once (incast), from the first packet on': () => sharingTable(seed, true),
    'after an outage': () => recoveryTable(seed),
  };
  const point: Readonly<Record<string, () => Promise<Table>>> = {
    'one flow over a lossy port on loopback, 500 Mbit/s, 2 ms': () =>
      confirmOnLoopback(loopback === true ? 1 : (loopback ?? 1), seed),
  };
  const results: Record<string, Table> = {};
  for (const [title, make] of Object.entries<() => Table | Promise<Table>>(
    loopback === undefined ? curve : point,
  )) {
    const table = await make();
    results[title] = table;
    process.stdout.write(`${title}\n${text(table)}\n\n`);
  }
  if (json !== undefined) await writeFile(json, `${JSON.stringify(results, null, 2)}\n`);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) await main();
