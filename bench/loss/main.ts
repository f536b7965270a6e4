/**
 * Goodput where packets are lost, in the simulator's virtual time: the same seed gives the same
 * numbers on every machine. Beside them stand the models of bench/loss/models.ts.
 *
 *   npm run bench:loss -- [--seed N] [--json FILE]
 */
import { writeFile } from 'node:fs/promises';
import { pathToFileURL } from 'node:url';
import { Command, InvalidArgumentError } from 'commander';
import { goBackN, pipePackets, reno, selectiveRepeat } from './models.js';
import { LINK, randomLoss, recoveryUs, sharedBottleneck } from './scenarios.js';

const LOSSES = [0, 0.01, 0.1, 1, 5];
const FLOWS = [1, 2, 4, 8, 16, 32, 64];
const OUTAGES_US = [1000, 10_000, 100_000, 1_000_000];
const LOSS_US = 300_000;
const SHARE_US = 100_000;
/** A shallow queue for a 10 Gbit/s port: 2 MiB is what a switch shares among 32 of them. */
const QUEUE_BYTES = 256 << 10;

type Table = readonly (readonly string[])[];

function lossTable(seed: number): Table {
  const heads = ['loss %', 'measured', 'go-back-N', 'selective', 'Reno', 'of go-back-N'];
  const percent = (value: number): string => (value * 100).toFixed(1);
  const rows = LOSSES.map((lossPercent) => {
    const loss = lossPercent / 100;
    const { goodput, timeouts, sentTwice } = randomLoss(lossPercent, seed, LOSS_US);
    const ideal = goBackN(loss, LINK);
    return [
      String(lossPercent),
      percent(goodput),
      percent(ideal),
      percent(selectiveRepeat(loss)),
      percent(loss === 0 ? 1 : reno(loss, LINK)),
      (goodput / ideal).toFixed(2),
      String(timeouts),
      percent(sentTwice),
    ];
  });
  return [[...heads, 'timeouts', 'sent again %'], ...rows];
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

function whole(value: string): number {
  const number = Number(value);
  if (Number.isSafeInteger(number) && number >= 0) return number;
  throw new InvalidArgumentError('an integer from 0 on is due.');
}

async function main(): Promise<void> {
  const program = new Command('bench:loss')
    .description('goodput where packets are lost, in virtual time')
    .option('--seed <n>', 'decides which packets are lost', whole, 1)
    .option('--json <file>', 'writes all tables')
    .parse();
  const { seed, json } = program.opts<{ readonly seed: number; readonly json?: string }>();
  const titles: Readonly<Record<string, () => Table>> = {
    [`one flow, 10 Gbit/s, 100 us, ${pipePackets(LINK).toFixed(1)} packets of 4 KiB`]: () =>
      lossTable(seed),
    'flows that share a switch port with a queue of 256 KiB': () => sharingTable(seed, false),
    'the same, all at once (incast), from the first packet on': () => sharingTable(seed, true),
    'after an outage': () => recoveryTable(seed),
  };
  const results: Record<string, Table> = {};
  for (const [title, make] of Object.entries(titles)) {
    const table = make();
    results[title] = table;
    process.stdout.write(`${title}\n${text(table)}\n\n`);
  }
  if (json !== undefined) await writeFile(json, `${JSON.stringify(results, null, 2)}\n`);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) await main();
