// `npm run bench:verbs`: the DAT API over the verbs provider beside perftest, between two guests.
import { writeFile } from 'node:fs/promises';
import { cpus, loadavg } from 'node:os';
import { Command, InvalidArgumentError } from 'commander';

import { type Cell, type Side, SIDES, tables } from '../../../bench/verbs/report.js';
import { type Result, TESTS, type Work, workOf } from '../../../bench/verbs/workload.js';
import type { Guest } from '../guest.js';
import { Lab, PATH_MTUS, type PathMtu } from '../lab.js';
import type { Kernel } from '../kernel.js';
import { runPerftest } from './perftest.js';
import { type Place, placeOf } from './places.js';
import { WorkerPair } from './workers.js';
import { positive } from './positive.js';

const KIB = 1024;
/** 2 B to 1 MiB. */
const SIZES = [2, 64, KIB, 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, KIB * KIB];
const LIMITS = { least: 1, most: 8 * KIB * KIB } as const;

interface Options {
  readonly sizes: readonly number[];
  readonly only: string;
  readonly rounds: number;
  readonly mtu: PathMtu;
  readonly sides: readonly Side[];
  readonly json?: string;
}

export async function bench(kernel: Kernel, args: readonly string[]): Promise<number> {
  const { sizes, only, rounds, mtu, sides, json } = optionsOf(args);
  const works = TESTS.filter((test) => test.includes(only)).flatMap((test) =>
    sizes.map((bytes) => workOf(test, bytes)),
  );
  if (works.length === 0) throw new Error(`no test is called "${only}": ${TESTS.join(', ')}`);
  const lab = await Lab.start({ kernel, guestCount: 2 });
  await lab.setPathMtu(mtu);
  const guests = [lab.guest(0), lab.guest(1)] as const;
  const runners = await runnersOf(guests, mtu, sides);
  const cells = works.map((work): Cell => ({ work, results: {} }));
  const about = { ...(await versionsOf(guests[0])), mtuBytes: mtu, rounds, ...machine() };
  try {
    for (let round = 1; round <= rounds; round++) {
      await measureRound(runners, cells, `${round}/${rounds}`);
      if (json) await writeFile(json, `${JSON.stringify({ ...about, cells }, null, 2)}\n`);
    }
  } finally {
    // Also when a cell has failed: what was measured before took minutes.
    process.stdout.write(`\n${tables(cells)}\n`);
  }
  await Promise.all(runners.map(({ close }) => close()));
  await lab.powerOff();
  return 0;
}

async function measureRound(
  runners: readonly Runner[],
  cells: readonly Cell[],
  name: string,
): Promise<void> {
  for (const { work, results } of cells) {
    for (const { side, run } of runners) {
      process.stderr.write(`\r${name} ${work.test} ${work.bytes} B: ${side}      `);
      (results[side] ??= []).push(await run(work));
    }
  }
}

async function versionsOf(guest: Guest): Promise<Record<string, string | undefined>> {
  const { stdout } = await guest.run("uname -r; dpkg-query -W -f '${Version}' perftest");
  const [guestKernel, perftest] = stdout.split('\n');
  return { node: process.version, guestKernel, perftest };
}

function machine(): Record<string, unknown> {
  return { cpu: cpus()[0]?.model, cpus: cpus().length, load: loadavg()[0] };
}

interface Runner {
  readonly side: Side;
  readonly run: (work: Work) => Promise<Result>;
  readonly close: () => Promise<void>;
}

/** What measures a cell, each between the same two guests; the sides take turns in each cell. */
async function runnersOf(
  guests: readonly [Guest, Guest],
  mtu: PathMtu,
  sides: readonly Side[],
): Promise<Runner[]> {
  const runners: Runner[] = [];
  for (const side of SIDES.filter((name) => sides.includes(name))) {
    if (side === 'perftest') {
      const run = (work: Work): Promise<Result> => runPerftest(guests, work, mtu);
      runners.push({ side, run, close: () => Promise.resolve() });
      continue;
    }
    const places = [await placeOf(guests[0], side, mtu), await placeOf(guests[1], side, mtu)];
    const pair = await WorkerPair.start(side, places as [Place, Place]);
    runners.push({ side, run: (work) => pair.measure(work), close: () => pair.close() });
  }
  return runners;
}

function optionsOf(args: readonly string[]): Options {
  return new Command('bench:verbs')
    .description('the DAT API over rdma_rxe beside perftest, between two guests')
    .option('--sizes <bytes>', 'message sizes, with commas between them', sizesOf, SIZES)
    .option('--only <text>', `tests whose name contains the text: ${TESTS.join(', ')}`, '')
    .option('--rounds <n>', 'interleaved rounds', positive, 3)
    .option('--mtu <bytes>', `path MTU: ${PATH_MTUS.join(' or ')}`, mtuOf, 4096)
    .option('--sides <names>', `of ${SIDES.join(',')}`, sidesOf, [...SIDES])
    .option('--json <file>', 'writes all measurements')
    .parse(args, { from: 'user' })
    .opts<Options>();
}

function sizesOf(text: string): number[] {
  const sizes = text.split(',').map(positive);
  if (sizes.every((bytes) => bytes >= LIMITS.least && bytes <= LIMITS.most)) return sizes;
  throw new InvalidArgumentError(`sizes are ${LIMITS.least} to ${LIMITS.most} bytes.`);
}

function mtuOf(text: string): PathMtu {
  const mtu = PATH_MTUS.find((bytes) => String(bytes) === text);
  if (mtu !== undefined) return mtu;
  throw new InvalidArgumentError(`${PATH_MTUS.join(' or ')} is due.`);
}

function sidesOf(text: string): Side[] {
  return text.split(',').map((name) => {
    const side = SIDES.find((known) => known === name);
    if (side === undefined)
      throw new InvalidArgumentError(`${name} is none of ${SIDES.join(', ')}.`);
    return side;
  });
}
