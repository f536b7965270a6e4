// `npm run bench:rstream`: rsockets of ours beside librdmacm's rstream, between two guests.
import { Command, InvalidArgumentError } from 'commander';

import { layOut } from '../../../../bench/compare/report.js';
import { median } from '../../../../bench/compare/statistics.js';
import type { Kernel } from '../../kernel.js';
import { Lab } from '../../lab.js';
import { Ends, type Side, SIDES } from './sides.js';
import { isTrip, workOf } from './work.js';
import { positive } from '../positive.js';

const KIB = 1024;
const MIB = KIB * KIB;
const SIZES = [64, 4 * KIB, 64 * KIB, MIB];
const MTU_BYTES = 4096;
const NAMES = Object.keys(SIDES) as Side[];
const [PEER, OURS] = ['rstream', 'verbs'] as const satisfies readonly Side[];

/** Microseconds a transfer, round by round, of a size. */
export type Results = Readonly<Record<Side, number[]>>;

export async function benchRstream(kernel: Kernel, args: readonly string[]): Promise<number> {
  const { sizes, rounds } = optionsOf(args);
  const lab = await Lab.start({ kernel, guestCount: 2 });
  await lab.setPathMtu(MTU_BYTES);
  const ends = new Ends([lab.guest(0), lab.guest(1)], MTU_BYTES);
  const cells = sizes.map((bytes): [number, Results] => [bytes, emptyResults()]);
  try {
    // The first round starts the processes, and does not count.
    for (let round = 0; round <= rounds; round++) {
      for (const [bytes, results] of cells) {
        for (const side of round % 2 === 0 ? NAMES : NAMES.toReversed()) {
          process.stderr.write(`\r${round}/${rounds} ${bytes} B: ${side}        `);
          const microseconds = await ends.measure(side, workOf(bytes));
          if (round > 0) results[side].push(microseconds);
        }
      }
    }
  } finally {
    // Also when a cell has failed: what was measured before took minutes.
    process.stdout.write(`\n${tableOf(cells)}\n`);
  }
  await ends.close();
  await lab.powerOff();
  return 0;
}

function emptyResults(): Results {
  return Object.fromEntries(NAMES.map((side) => [side, []])) as unknown as Results;
}

/** Half round trips in us, larger sizes in MB/s; ours divided by rstream's of the same round. */
export function tableOf(cells: readonly (readonly [number, Results])[]): string {
  const lines = cells.map(([bytes, results]) => {
    const amounts = (side: Side): number[] =>
      results[side].map((microseconds) => (isTrip(bytes) ? microseconds : bytes / microseconds));
    const theirs = amounts(PEER);
    const ratios = amounts(OURS).map((amount, round) => amount / (theirs[round] ?? NaN));
    const spread = `${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}`;
    return [
      `${bytes} B, ${isTrip(bytes) ? 'us a half round trip' : 'MB/s'}`,
      ...NAMES.map((side) => median(amounts(side)).toPrecision(3)),
      `${median(ratios).toFixed(2)} (${spread})`,
    ];
  });
  return layOut(['transfers', ...NAMES, `${OURS} / ${PEER}`], lines, 'markdown');
}

interface Options {
  readonly sizes: readonly number[];
  readonly rounds: number;
}

function optionsOf(args: readonly string[]): Options {
  return new Command('bench:rstream')
    .description('rsockets over rdma_rxe and softroce beside rstream, between two guests')
    .option('--sizes <bytes>', 'of a transfer, with commas between them', sizesOf, SIZES)
    .option('--rounds <n>', 'interleaved rounds', positive, 3)
    .parse(args, { from: 'user' })
    .opts<Options>();
}

function sizesOf(text: string): number[] {
  const sizes = text.split(',').map(positive);
  if (sizes.every((bytes) => bytes <= 8 * MIB)) return sizes;
  throw new InvalidArgumentError(`sizes are 1 to ${8 * MIB} bytes.`);
}
