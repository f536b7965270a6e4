/** A run: every cell of the rows, round by round, each contender in processes of its own. */
import { MissingPeer } from '../peers/build.js';
import type { Cell, Measurement } from './cells.js';
import { CONTENDERS, PEERS, type Pair } from './contender.js';
import type { Row } from './rows.js';
import { settle, type Settling } from './settle.js';
import { type Summary, summarize } from './summary.js';

/** Opens a contender's processes on two addresses. */
export type Open = (contender: string, local: string, remote: string) => Promise<Pair>;

export interface RunOptions {
  readonly rounds: number;
  /** Of each cell of a round. */
  readonly seconds: number;
  readonly rows: readonly Row[];
  /** The first three numbers of the local addresses; default 127.0.0. */
  readonly network?: string;
  readonly open?: Open;
  /** Most that the warm-up of a cell may take, until it settles; left out, it is one short run. */
  readonly settleSeconds?: number;
  /** A cell has warmed up, or has not: then it has no figures. */
  readonly onSettled?: (cell: string, settling: Settling) => void;
  readonly onRound?: (round: number) => void;
  /** A contender does not take part, as a package is not installed: which one. */
  readonly onSkipped?: (contender: string, why: string) => void;
  /** A peer could not run, and the others go on without it. Left out, it ends the run. */
  readonly onFailed?: (contender: string, why: string) => void;
}

/** The first round warms every cell up, in windows as long as that, and does not count. */
const WARM_UP_SECONDS = 0.2;

const openKnown: Open = (contender, local, remote) => CONTENDERS[contender]!.open(local, remote);

/**
 * Measures round by round, every second one in the opposite order.
 * @throws Error of one of ours that could not run, or of a peer without `onFailed`
 */
export async function runBench(options: RunOptions): Promise<Summary[]> {
  const { rounds, seconds, rows, onRound, settleSeconds = 0 } = options;
  const cells = new Map<string, Cell>();
  for (const { ours, rivals } of rows) {
    cells.set(ours.name, ours);
    for (const rival of rivals) cells.set(rival.cell.name, rival.cell);
  }
  const results = new Map<string, Measurement[]>();
  const pairs = new Map<string, Pair>();
  const failures = new Map<string, string>();
  const onError = (contender: string, error: unknown): void => {
    if (options.onFailed === undefined || !PEERS.includes(contender)) throw error;
    const why = error instanceof Error ? error.message : String(error);
    failures.set(contender, `could not run: ${why}`);
    options.onFailed(contender, why);
    pairs.get(contender)?.kill();
    pairs.delete(contender);
  };
  const warm = async (pair: Pair, cell: Cell): Promise<void> => {
    const time = Math.min(seconds / 2, WARM_UP_SECONDS);
    const window = async (): Promise<number> => (await pair.measure(cell, time)).value;
    const settling = await settle(window, cell.workload === 'idle' ? 0 : settleSeconds);
    if (settleSeconds === 0 || cell.workload === 'idle') return;
    options.onSettled?.(cell.name, settling);
    if (settling.settled) return;
    failures.set(cell.name, `did not settle in ${settling.seconds.toFixed(1)} s`);
  };
  try {
    await openAll(
      [...new Set([...cells.values()].map((each) => each.contender))],
      pairs,
      options,
      onError,
    );
    const order = [...cells.values()];
    for (let round = 0; round <= rounds; round++) {
      onRound?.(round);
      for (const each of round % 2 === 0 ? order : order.toReversed()) {
        const pair = pairs.get(each.contender);
        if (pair === undefined || failures.has(each.name)) continue;
        try {
          if (round === 0) await warm(pair, each);
          else {
            const measurement = await pair.measure(each, seconds);
            results.set(each.name, [...(results.get(each.name) ?? []), measurement]);
          }
        } catch (error) {
          onError(each.contender, error);
        }
      }
    }
    await Promise.all([...pairs.values()].map((pair) => pair.close()));
  } finally {
    for (const pair of pairs.values()) pair.kill();
  }
  return rows.map((row) => summarize(row, (name) => results.get(name) ?? [], failures));
}

/** Two addresses for each contender, in the order of the rows. */
async function openAll(
  contenders: readonly string[],
  pairs: Map<string, Pair>,
  { network = '127.0.0', open = openKnown, onSkipped }: RunOptions,
  onError: (contender: string, error: unknown) => void,
): Promise<void> {
  for (const [i, contender] of contenders.entries()) {
    const [local, remote] = [`${network}.${2 * i + 1}`, `${network}.${2 * i + 2}`];
    try {
      pairs.set(contender, await open(contender, local, remote));
    } catch (error) {
      if (error instanceof MissingPeer) onSkipped?.(contender, error.message);
      else onError(contender, error);
    }
  }
}
