/**
 * Whether it pays to have the device on a worker thread of its own, which shares memory with the
 * consumer: SENDs over softroce between two processes, or two such pairs at once; both ends either
 * way. And what it costs to have the pairs on threads of two processes, which share an address for
 * each process. The system places the threads.
 *
 *   npm run bench:cores -- [--rounds N] [--seconds S] [--markdown]
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { Command } from 'commander';
import { positive } from '../compare/arguments.js';
import { figure, layOut, range } from '../compare/report.js';
import { median } from '../compare/statistics.js';
import { type Job, MODES, type Mode, type Result } from './job.js';

const WORKER = fileURLToPath(new URL('worker.js', import.meta.url));
const GIB = 2 ** 30;
/** Receives for each message in flight: a receiver that is not ready would cost its timer. */
const RECEIVES = 4;

export interface Load {
  readonly messageBytes: number;
  readonly depth: number;
  readonly checksum: boolean;
  readonly pairs: number;
}

export interface Throughput {
  readonly gbPerSecond: number;
  /** Of all processes. */
  readonly cpuPerGib: number;
}

const LOADS: readonly Load[] = [
  { messageBytes: 64, depth: 64 },
  { messageBytes: 64 << 10, depth: 32 },
  { messageBytes: 1 << 20, depth: 4 },
].flatMap((size) =>
  [false, true].flatMap((checksum) => [1, 2].map((pairs) => ({ ...size, checksum, pairs }))),
);

export async function measure(
  load: Load,
  mode: Mode,
  seconds: number,
  network = '127.0.0',
): Promise<Throughput> {
  const { pairs, ...rest } = load;
  const threads = mode === 'slots' ? pairs : 1;
  const runs = Array.from({ length: pairs / threads }, (_, i) => {
    const ends = [`${network}.${2 * i + 1}`, `${network}.${2 * i + 2}`] as const;
    return runPair({ ...rest, mode, seconds, threads, thread: 0 }, ...ends);
  });
  const results = (await Promise.all(runs)).flat();
  const clients = results.filter((_, i) => i % 2 === 0);
  const sum = (each: (result: Result) => number, of: readonly Result[]): number =>
    of.reduce((total, result) => total + each(result), 0) * load.messageBytes;
  const cpuSeconds = results.reduce((total, result) => total + result.cpuSeconds, 0);
  return {
    gbPerSecond: sum(({ counted, seconds: time }) => counted / time, clients) / 1e9,
    cpuPerGib: cpuSeconds / (sum(({ messages }) => messages, clients) / GIB),
  };
}

type Both = Omit<Job, 'role' | 'local' | 'remote'>;

async function runPair(job: Both, left: string, right: string): Promise<[Result, Result]> {
  const depth = RECEIVES * job.depth;
  const server = start({ ...job, depth, role: 'server', local: right, remote: left });
  let client: ChildProcess | undefined;
  try {
    await message(server);
    client = start({ ...job, role: 'client', local: left, remote: right });
    await message(client);
    const sent = (await message(client)) as Result;
    const received = message(server);
    server.send('stop');
    return [sent, (await received) as Result];
  } finally {
    server.kill('SIGKILL');
    client?.kill('SIGKILL');
  }
}

function start(job: Job): ChildProcess {
  return fork(WORKER, [JSON.stringify(job)]);
}

/** The next message of a process; its end is an error. */
async function message(child: ChildProcess): Promise<unknown> {
  const abort = new AbortController();
  const ended = once(child, 'exit', abort).then(([code]) => {
    throw new Error(`a process of the benchmark has ended: ${String(code)}`);
  });
  try {
    const [value] = (await Promise.race([once(child, 'message', abort), ended])) as unknown[];
    return value;
  } finally {
    ended.catch(() => undefined);
    abort.abort();
  }
}

async function main(): Promise<void> {
  const { rounds, seconds, markdown } = new Command('bench:cores')
    .description('a device on the thread of its consumer, on a worker thread, or a slot a thread')
    .option('--rounds <n>', 'interleaved rounds', positive, 6)
    .option('--seconds <s>', 'of each measurement', positive, 0.6)
    .option('--markdown', 'prints the table as Markdown')
    .parse()
    .opts<{ rounds: number; seconds: number; markdown?: true }>();
  process.stdout.write(`${availableParallelism()} cores, ${rounds} rounds\n`);
  const others = MODES.slice(1);
  const headings = [
    ...['SEND', 'pairs', 'consumer', ...MODES],
    ...others.flatMap((mode) => [`${mode} / one thread`, 'CPU']),
  ];
  const rows: string[][] = [];
  for (const load of LOADS) {
    const found = new Map<Mode, Throughput[]>(MODES.map((mode) => [mode, []]));
    for (let round = 0; round < rounds; round++) {
      for (const mode of MODES) found.get(mode)!.push(await measure(load, mode, seconds));
    }
    const one = found.get('one thread')!;
    const ratios = (mode: Mode, of: keyof Throughput): number[] =>
      found.get(mode)!.map((m, i) => m[of] / one[i]![of]);
    const speed = (all: readonly Throughput[]): string =>
      `${figure(median(all.map((m) => m.gbPerSecond)))} GB/s`;
    rows.push([
      `${String(load.messageBytes)} B`,
      String(load.pairs),
      load.checksum ? 'CRC-32 of each' : '',
      ...MODES.map((mode) => speed(found.get(mode)!)),
      ...others.flatMap((mode) => [
        range(ratios(mode, 'gbPerSecond')),
        range(ratios(mode, 'cpuPerGib')),
      ]),
    ]);
  }
  process.stdout.write(`${layOut(headings, rows, markdown ? 'markdown' : 'text')}\n`);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) await main();
