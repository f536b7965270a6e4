/**
 * What it costs to hand a completion to its consumer, for each way of delivery: nanoseconds
 * against a bare callback, and bytes allocated. The EVD by itself: no transport, no sockets.
 *
 *   npm run bench:events -- [--messages N] [--rounds N] [--json FILE]
 */
import { writeFile } from 'node:fs/promises';
import { pathToFileURL } from 'node:url';
import { Command } from 'commander';
import { positive } from '../compare/arguments.js';
import { AllocationCount } from '../allocation.js';
import { describeRun } from '../compare/describe-run.js';
import { layOut } from '../compare/report.js';
import { median } from '../compare/statistics.js';
import { WAYS, type Way } from './ways.js';

/** Completions that are there at a time. */
const BURSTS = [1, 32];

export interface Cost {
  readonly way: string;
  readonly burst: number;
  /** Of CPU time, each round. */
  readonly nanoseconds: readonly number[];
  /** Allocated, a completion. */
  readonly bytes: number;
}

interface EventsOptions {
  /** Of each way and burst, over all rounds. */
  readonly messages: number;
  readonly rounds: number;
  readonly ways?: readonly Way[];
}

/** Warm-up, then the rounds of all ways in turn. */
export async function measureEvents(options: EventsOptions): Promise<Cost[]> {
  const { messages, rounds, ways = WAYS } = options;
  const tests = ways.flatMap((way) => {
    return BURSTS.map((burst) => ({ way, burst, nanoseconds: [] as number[], allocated: 0 }));
  });
  const each = Math.ceil(messages / rounds / 32) * 32;
  for (const { way, burst } of tests) await way.run(Math.min(each, 320_000), burst);
  for (let round = 0; round < rounds; round++) {
    for (const test of tests) {
      const allocation = new AllocationCount();
      const start = process.cpuUsage();
      await test.way.run(each, test.burst);
      const { user, system } = process.cpuUsage(start);
      test.nanoseconds.push(((user + system) * 1000) / each);
      test.allocated += allocation.stop();
    }
  }
  return tests.map(({ way, burst, nanoseconds, allocated }) => {
    return { way: way.name, burst, nanoseconds, bytes: allocated / (each * rounds) };
  });
}

export function eventsTable(costs: readonly Cost[], style: 'text' | 'markdown'): string {
  const headings = ['way', ...BURSTS.map((n) => `ns, bursts of ${n}`), 'bytes'];
  const ways = [...new Set(costs.map(({ way }) => way))];
  const lines = ways.map((name) => {
    const own = costs.filter(({ way }) => way === name);
    const bytes = own.map((cost) => cost.bytes.toFixed(1)).join(' / ');
    return [name, ...own.map((cost) => median(cost.nanoseconds).toFixed(1)), bytes];
  });
  return layOut(headings, lines, style);
}

async function main(): Promise<void> {
  const program = new Command('bench:events')
    .description('what it costs to hand a completion to its consumer')
    .option('--messages <n>', 'of each way', positive, 10_000_000)
    .option('--rounds <n>', 'in which they are measured', positive, 5)
    .option('--json <file>', 'writes all measurements')
    .option('--markdown', 'prints the table as Markdown')
    .parse();
  const options = program.opts<EventsOptions & { json?: string; markdown?: true }>();
  const costs = await measureEvents({ ...options, rounds: Math.ceil(options.rounds) });
  process.stdout.write(`${eventsTable(costs, options.markdown ? 'markdown' : 'text')}\n`);
  if (options.json === undefined) return;
  await writeFile(options.json, `${JSON.stringify({ ...describeRun(), costs }, null, 2)}\n`);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) await main();
