/**
 * softroce against every peer that a user could pick instead: throughput, latency, message rate
 * and CPU time between two processes on loopback, in interleaved rounds. What counts is the ratio
 * of one round: the machine's own speed comes and goes. docs/performance.md explains each peer.
 *
 *   npm run bench -- [--rounds N] [--seconds S] [--only TEXT ...] [--peers LIST] [--json FILE]
 *                    [--markdown] [--counters] [--against REV] [--compare BEFORE AFTER]
 */
import { writeFile } from 'node:fs/promises';
import { pathToFileURL } from 'node:url';
import { Command, InvalidArgumentError, Option } from 'commander';
import { positive } from './compare/arguments.js';
import { compareResults, readResult } from './against/files.js';
import { measureAgainst } from './against/measure.js';
import { PEERS } from './compare/contender.js';
import { countersTable } from './compare/counted.js';
import { describeRun } from './compare/describe-run.js';
import { matrix } from './compare/matrix.js';
import { nameOf, table } from './compare/report.js';
import { type Row, rowsNamed } from './compare/rows.js';
import { runBench } from './compare/run.js';
import type { Settling } from './compare/settle.js';

/** Without a say: enough for a look; enough for the sign test to tell a change from noise. */
const ROUNDS = 5;
const AGAINST_ROUNDS = 8;
/** Most that the warm-up of a cell may take. */
const SETTLE_SECONDS = 5;

interface Arguments {
  readonly rounds?: number;
  readonly seconds: number;
  readonly only?: readonly string[];
  readonly peers: readonly string[];
  readonly json?: string;
  readonly markdown?: true;
  readonly counters?: true;
  readonly against?: string;
  readonly compare?: readonly string[];
}

/** @throws InvalidArgumentError for a peer that is not known */
function peerList(text: string): readonly string[] {
  if (text === 'all') return PEERS;
  if (text === 'none') return [];
  const names = text.split(',');
  const unknown = names.find((name) => !PEERS.includes(name));
  if (unknown === undefined) return names;
  throw new InvalidArgumentError(`"${unknown}" is none of all, none, ${PEERS.join(', ')}.`);
}

function parse(): { options: Arguments; rows: readonly Row[] } {
  const program = new Command('bench')
    .description('softroce against its peers, between two processes on loopback')
    .option(
      '--rounds <n>',
      `interleaved rounds (${ROUNDS}; --against: ${AGAINST_ROUNDS})`,
      positive,
    )
    .option('--seconds <s>', 'of each measurement', positive, 0.5)
    .option('--only <text...>', 'rows whose name contains one of the texts, whatever its case')
    .option('--peers <list>', `all, none or a list of ${PEERS.join(',')}`, peerList, PEERS)
    .option('--json <file>', 'writes all measurements')
    .option('--markdown', 'prints the table as Markdown')
    .addOption(
      new Option('--counters', 'prints what the devices have counted, too').conflicts([
        'against',
        'compare',
      ]),
    )
    .option('--against <rev>', 'compares with another commit instead of peers')
    .option('--compare <file...>', 'compares two files of --json instead of measuring')
    .parse();
  const options = program.opts<Arguments>();
  const files = options.compare?.length ?? 2;
  if (files !== 2) program.error(`--compare takes two files, not ${files}`);
  const texts = options.only ?? [''];
  for (const text of texts) {
    if (rowsNamed([text]).length === 0) program.error(`no row is called "${text}"`);
  }
  return { options, rows: rowsNamed(texts) };
}

/** The rows with those rivals only. */
function against(rows: readonly Row[], peers: readonly string[]): Row[] {
  const stays = (contender: string): boolean =>
    peers.includes(contender) || !PEERS.includes(contender);
  return rows.map((row) => {
    return { ...row, rivals: row.rivals.filter((rival) => stays(rival.cell.contender)) };
  });
}

async function main(): Promise<void> {
  const { options, rows } = parse();
  const { seconds, peers, json, markdown, compare, against: revision } = options;
  const fallback = revision === undefined ? ROUNDS : AGAINST_ROUNDS;
  const rounds = Math.ceil(options.rounds ?? fallback);
  const style = markdown ? 'markdown' : 'text';
  const onRound = (round: number): void => {
    process.stderr.write(round === 0 ? 'warm-up' : ` ${round}/${rounds}`);
  };
  if (compare !== undefined) {
    const [before, after] = await Promise.all(compare.map(readResult));
    process.stdout.write(`${compareResults(before!, after!, style)}\n`);
    return;
  }
  const onSettled = (cell: string, { seconds: time, settled }: Settling): void => {
    const how = settled ? 'warm after' : 'did not settle in';
    process.stderr.write(`\n${cell}: ${how} ${time.toFixed(1)} s`);
  };
  const common = { rounds, seconds, onRound, settleSeconds: SETTLE_SECONDS, onSettled };
  const skipped: Record<string, string> = {};
  const onSkipped = (contender: string, why: string): void => {
    skipped[contender] = why;
    process.stderr.write(`SKIPPED: ${nameOf(contender)} ${why}\n`);
    // CI installs what the peers need.
    if (process.env['CI']) process.exitCode = 1;
  };
  const failed: Record<string, string> = {};
  const onFailed = (contender: string, why: string): void => {
    failed[contender] = why;
    process.stderr.write(`\nFAILED: ${nameOf(contender)}: ${why}\n`);
    process.exitCode = 1;
  };
  if (revision !== undefined) {
    const run = { ...common, rows, onSkipped };
    const result = await measureAgainst(revision, run, style);
    process.stderr.write('\n');
    process.stdout.write(`${result.report}\n`);
    if (json !== undefined) await save(json, rounds, seconds, result.data);
    return;
  }
  const chosen = against(rows, peers);
  const run = { ...common, rows: chosen, onSkipped, onFailed };
  const summaries = await runBench(run);
  process.stderr.write('\n');
  process.stdout.write(`${markdown ? matrix(summaries) : table(summaries)}\n`);
  if (options.counters) process.stdout.write(`\n${countersTable(summaries, style)}\n`);
  for (const [contender, why] of Object.entries(skipped)) {
    process.stdout.write(`skipped: ${nameOf(contender)} ${why}\n`);
  }
  for (const [contender, why] of Object.entries(failed)) {
    process.stdout.write(`FAIL  ${nameOf(contender)}: ${why}\n`);
  }
  if (json !== undefined) await save(json, rounds, seconds, { skipped, failed, rows: summaries });
}

async function save(file: string, rounds: number, seconds: number, data: object): Promise<void> {
  const result = { ...describeRun(), rounds, seconds, ...data };
  await writeFile(file, `${JSON.stringify(result, null, 2)}\n`);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  try {
    await main();
  } catch (error) {
    process.stderr.write(`\nbench: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  }
}
