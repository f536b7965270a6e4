/**
 * Two processes on one address that they share, beside two on an address each: the rows of
 * `npm run bench` over UDP and through shared memory, in interleaved pairs.
 *
 *   npm run bench:slots -- [--rounds N] [--seconds S] [--only TEXT ...] [--counts N] [--markdown]
 *
 * A row is worse where the sign test says so in each count.
 */
import { pathToFileURL } from 'node:url';
import { Command } from 'commander';
import { positive } from '../compare/arguments.js';
import { type Change, changesOf, changeTable } from '../against/changes.js';
import { runBench } from '../compare/run.js';
import { openOnOne, SLOT_ROWS } from './rows.js';

interface Options {
  readonly rounds: number;
  readonly seconds: number;
  readonly counts: number;
  readonly only: readonly string[];
  readonly markdown?: true;
}

/** Figures that are worse in every count. */
export function worseInAll(counts: readonly (readonly Change[])[]): string[] {
  const [first = [], ...others] = counts;
  const isWorse = (changes: readonly Change[], { label, what }: Change): boolean =>
    changes.some((each) => each.label === label && each.what === what && each.verdict === 'worse');
  return first
    .filter((change) => change.verdict === 'worse' && others.every((all) => isWorse(all, change)))
    .map(({ label, what }) => `${label} [${what}]`);
}

async function main(): Promise<void> {
  const { rounds, seconds, counts, only, markdown } = new Command('bench:slots')
    .description('two processes on one address that they share, beside two addresses')
    .option('--rounds <n>', 'interleaved pairs', positive, 8)
    .option('--seconds <s>', 'of each measurement', positive, 0.5)
    .option('--counts <n>', 'how often all of it is done', positive, 2)
    .option('--only <text...>', 'rows whose name contains one of the texts, whatever its case', [
      '',
    ])
    .option('--markdown', 'prints the tables as Markdown')
    .parse()
    .opts<Options>();
  const wanted = only.map((text) => text.toLowerCase());
  const rows = SLOT_ROWS.filter(({ label }) =>
    wanted.some((text) => label.toLowerCase().includes(text)),
  );
  const all: Change[][] = [];
  for (let count = 1; count <= counts; count++) {
    const onRound = (round: number): void => {
      process.stderr.write(round === 0 ? `count ${count}: warm-up` : ` ${round}/${rounds}`);
    };
    const summaries = await runBench({ rounds, seconds, rows, open: openOnOne, onRound });
    const changes = changesOf(summaries);
    all.push(changes);
    process.stderr.write('\n');
    const table = changeTable(changes, markdown ? 'markdown' : 'text');
    process.stdout.write(`before: two addresses; after: two slots of one\n${table}\n\n`);
  }
  const worse = worseInAll(all);
  process.stdout.write(
    worse.length === 0
      ? 'No row is worse in each count.\n'
      : `Worse in each count: ${worse.join('; ')}.\n`,
  );
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) await main();
