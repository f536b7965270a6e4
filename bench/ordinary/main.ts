/**
 * What people run, on ordinary machines: programs with their defaults, unpinned, beside those that
 * could be written without this package. docs/benchmarks.md says how to read it.
 *
 *   npm run bench:ordinary -- [--quick] [--short] [--only TEXT ...] [--place NAME ...] [--rounds N]
 * [--program NAME ...] [--seconds S] [--json FILE] [--against REV] [--markdown] [--record]
 */
import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { Command, Option } from 'commander';
import { named, positive } from '../compare/arguments.js';
import { changeTable, conclusion } from '../against/changes.js';
import { buildWorktree } from '../against/worktree.js';
import { describeRun } from '../compare/describe-run.js';
import { PLACES } from './places.js';
import { PROGRAMS } from './programs.js';
import { changesOfOrdinary, ordinaryTables, record } from './report.js';
import { ROWS, shortRows } from './rows.js';
import { runOrdinary, type RunOptions } from './run.js';

const PAGE = fileURLToPath(new URL('../../../docs/performance.md', import.meta.url));

interface Arguments {
  readonly quick?: true;
  readonly short?: true;
  readonly only?: readonly string[];
  readonly place?: readonly string[];
  readonly program?: readonly string[];
  readonly rounds?: number;
  readonly seconds?: number;
  readonly json?: string;
  readonly against?: string;
  readonly markdown?: true;
  readonly record?: true;
}

/** Rounds, seconds of a measurement, seconds of a warm-up. */
type Times = Pick<RunOptions, 'rounds' | 'seconds' | 'settleSeconds'>;
/** 378 programs in places take 34 minutes without their warm-up, and an hour with all of it. */
const FULL: Times = { rounds: 9, seconds: 0.25, settleSeconds: 4 };
const QUICK: Times = { rounds: 3, seconds: 0.2, settleSeconds: 2 };
const QUICK_PROGRAMS = 'easy-shm easy-udp channel-shm forward tcp again relays'.split(' ');
const SHORT: Times = { rounds: 1, seconds: 0.05, settleSeconds: 0.1 };

function parse(): { given: Arguments; options: RunOptions } {
  const program = new Command('bench:ordinary')
    .description('programs with their defaults, beside sockets of Node, where people run them')
    .option('--quick', 'the rows that decide, in two minutes')
    .option('--short', 'each program, peer and place in a short row: whether everything works')
    .option('--only <text...>', 'rows whose name contains one of the texts, whatever its case')
    .addOption(new Option('--place <name...>').choices(PLACES.map(({ label }) => label)))
    .option('--program <name...>', `some of ${Object.keys(PROGRAMS).join(', ')}`)
    .option('--rounds <n>', 'interleaved rounds (9)', positive)
    .option('--seconds <s>', 'of each measurement (0.25)', positive)
    .option('--json <file>', 'writes all measurements')
    .option('--against <rev>', 'compares with another commit instead of peers')
    .option('--markdown', 'prints tables as Markdown')
    .option('--record', 'writes the tables into docs/performance.md')
    .parse();
  const given = program.opts<Arguments>();
  const { quick, short, only = [''], place, rounds, seconds } = given;
  const rows = named(short ? shortRows() : ROWS, only).filter(({ isQuick }) => !quick || isQuick);
  if (rows.length === 0) program.error(`no row is called "${only.join('" or "')}"`);
  const places = PLACES.filter(
    ({ label, isQuick }) => place?.includes(label) ?? (!quick || isQuick),
  );
  const programs = given.program ?? (quick ? QUICK_PROGRAMS : Object.keys(PROGRAMS));
  const times = {
    ...(short ? SHORT : quick ? QUICK : FULL),
    ...(rounds && { rounds: Math.ceil(rounds) }),
    ...(seconds && { seconds }),
  };
  return { given, options: { rows, places, programs, ...times, onProgress: console.error } };
}

async function main(): Promise<void> {
  const { given, options } = parse();
  const style = given.markdown ? 'markdown' : 'text';
  const description = describeRun();
  // A signal ends the run as an exit does, which takes places and processes away.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => process.exit(130));
  }
  const before = given.against ? buildWorktree(given.against, 'ordinary') : undefined;
  const outcome = await runOrdinary({ ...options, before: before?.worker });
  before?.remove();
  for (const [place, why] of Object.entries(outcome.leftOut)) {
    process.stderr.write(`SKIPPED: ${place}: ${why}\n`);
    if (process.env['CI']) process.exitCode = 1;
  }
  for (const { place, row, program, failure } of outcome.results) {
    if (failure === undefined) continue;
    process.stderr.write(`FAILED: ${place}: ${row}: ${program}: ${failure}\n`);
    process.exitCode = 1;
  }
  if (before === undefined) process.stdout.write(`${ordinaryTables(outcome, style)}\n`);
  else {
    const changes = changesOfOrdinary(outcome);
    process.stdout.write(`${changeTable(changes, style)}\n\n${conclusion(changes)}\n`);
  }
  if (given.json !== undefined) {
    await writeFile(given.json, `${JSON.stringify({ ...description, ...outcome }, null, 2)}\n`);
  }
  if (given.record) {
    const page = await readFile(PAGE, 'utf8');
    await writeFile(PAGE, record(page, ordinaryTables(outcome, 'markdown'), description));
  }
}

await main();
