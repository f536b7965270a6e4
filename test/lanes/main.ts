/**
 * `npm test` and `npm run test:all`: runs lanes of tests (lanes.ts), as many rooms at a time as
 * there are processors, and counts.
 *
 *   node dist/test/lanes/main.js [quick] [long] [test/PATH...] [options of mocha]
 *
 * A path chooses the files that begin with it, of either lane. The quick lane alone leaves out the
 * long cases of its files (test/support/lane.ts).
 * Prints a line for each file, the slowest files, what failed and why. The last line is
 * "N passed, N failed". The exit code is 0 if at least one test passed and none failed.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { availableParallelism } from 'node:os';
import { join, relative } from 'node:path';
import Mocha from 'mocha';
import {
  compiled,
  isQuickRun,
  type Lane,
  LANE_VARIABLE,
  LANES,
  laneOf,
  type Room,
  ROOT,
  roomsOf,
  testFiles,
} from './lanes.js';
import type { Failure, FileReport, Report } from './messages.js';

/** More processes than this take time from tests that are about real time. */
const MOST_PROCESSES = 4;
/** Files that are listed at the end. */
const SLOWEST = 10;

const isLane = (word: string): word is Lane => (LANES as readonly string[]).includes(word);

/** Takes words from the front for as long as they are of a kind. */
function takeWhile<T extends string>(words: string[], is: (word: string) => word is T): T[] {
  const end = words.findIndex((word) => !is(word));
  return words.splice(0, end < 0 ? words.length : end).filter(is);
}

const mochaOptions = process.argv.slice(2);
const named = takeWhile(mochaOptions, isLane);
const lanes = named.length > 0 ? named : LANES;
const paths = takeWhile(mochaOptions, (word): word is string => word.startsWith('test/'));

const isChosen = (file: string): boolean =>
  paths.length > 0 ? paths.some((path) => file.startsWith(path)) : lanes.includes(laneOf(file));
const files = testFiles().filter(isChosen);
const quickPid = isQuickRun(lanes, paths) ? String(process.pid) : '';
const env = { ...process.env, [LANE_VARIABLE]: quickPid };
const waiting = roomsOf(files);
const running = new Set<ChildProcess>();
const done: FileReport[] = [];
const failures: Failure[] = [];

const sum = (of: (report: FileReport) => number): number =>
  done.reduce((total, report) => total + of(report), 0);
const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;
const sourceOf = (file: string): string =>
  relative(join(ROOT, 'dist'), file).replace(/\.js$/, '.ts');

function printFile(report: FileReport): void {
  const { file, passed, failed, skipped, milliseconds } = report;
  const counts = [`${passed} passed`];
  if (failed > 0) counts.push(`${failed} FAILED`);
  if (skipped > 0) counts.push(`${skipped} skipped`);
  const place = `${String(done.length).padStart(String(files.length).length)}/${files.length}`;
  console.log(`[${place}] ${sourceOf(file)}: ${counts.join(', ')} (${seconds(milliseconds)})`);
}

/** A process that ended otherwise than with its last test: a crash, or something left open. */
function broken({ name }: Room, how: string): Failure {
  const message = `The process that ran these tests ${how}; its output above may say why.`;
  return { titlePath: [name], message, stack: message };
}

/** Runs the tests of a room in a process of their own. */
function runRoom(room: Room): Promise<void> {
  const cli = createRequire(import.meta.url).resolve('mocha/lib/cli/cli.js');
  const reporter = join(import.meta.dirname, 'reporter.js');
  const child = spawn(
    process.execPath,
    [
      '--enable-source-maps',
      cli,
      ...['--require', reporter, '--reporter', 'room'],
      ...mochaOptions,
      ...room.files.map(compiled),
    ],
    { cwd: ROOT, env, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] },
  );
  running.add(child);
  let ended = false;
  let failed = 0;
  child.on('message', (report: Report) => {
    if (report.kind === 'file') {
      done.push(report);
      failed += report.failed;
      printFile(report);
    } else {
      ended = true;
      failures.push(...report.failures);
    }
  });
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => {
      running.delete(child);
      const how = signal === null ? `exited with code ${code}` : `was ended by ${signal}`;
      if (!ended || (failed === 0 && code !== 0)) failures.push(broken(room, how));
      resolve();
    });
  });
}

/** Takes rooms until none is left. */
async function work(): Promise<void> {
  for (let room = waiting.shift(); room !== undefined; room = waiting.shift()) {
    await runRoom(room);
  }
}

function printEnd(): void {
  console.log('\nThe slowest files:');
  const slowest = [...done].sort((a, b) => b.milliseconds - a.milliseconds).slice(0, SLOWEST);
  for (const { file, milliseconds } of slowest) {
    console.log(`${seconds(milliseconds).padStart(9)}  ${sourceOf(file)}`);
  }
  const skipped = sum((report) => report.skipped);
  if (skipped > 0) console.log(`\n${skipped} skipped: this machine cannot run them, see SKIPPED`);
  if (failures.length > 0) {
    console.log(`\n  ${failures.length} failing`);
    Mocha.reporters.Base.list(failures.map(asTest));
  }
  const passed = sum((report) => report.passed);
  console.log(`\n${passed} passed, ${failures.length} failed`);
  if (passed === 0 || failures.length > 0) process.exitCode = 1;
}

/** What mocha's list of failures reads of a test. */
function asTest({ titlePath, ...err }: Failure): Mocha.Test {
  return { titlePath: () => [...titlePath], err } as unknown as Mocha.Test;
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    for (const child of running) child.kill(signal);
    process.exit(130);
  });
}
const processes = Math.min(availableParallelism(), MOST_PROCESSES, waiting.length);
const chosen = paths.length > 0 ? paths : lanes;
console.log(`${chosen.join(', ')}: ${files.length} files, ${processes} processes at a time`);
await Promise.all(Array.from({ length: processes }, work));
printEnd();
