// Entry of run.sh: gets what the lab needs, goes into the sandbox, runs what was asked for there.
import { spawnSync, type SpawnSyncReturns } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';

import { knowSlowdown } from '../support/patience.js';
import { bench } from './bench/main.js';
import { benchRstream } from './bench/rstream/main.js';
import { benchStorage } from './bench/storage.js';
import { SEED_VARIABLE } from './cases/differential.js';
import { allCases } from './cases/index.js';
import { cpuSeconds } from './cpu-time.js';
import { bootShell, type Guest } from './guest.js';
import { interopPage, recordPieces } from './interop-table.js';
import { ensureKernel, type Kernel } from './kernel.js';
import { Lab } from './lab.js';
import { machineTime } from './machine-time.js';
import { ensurePackages } from './packages.js';
import { reportDir, repositoryRoot } from './paths.js';
import { enterSandbox, inSandbox, runDir, runInSandbox } from './sandbox.js';
import { type Case, type Lane, type Outcome, runCases } from './suite.js';

const VERBS = [
  'cases',
  'full',
  'shell',
  'bench',
  'bench-rstream',
  'bench-storage',
  'exec',
] as const;
type Verb = (typeof VERBS)[number];
const INTERRUPTED = 130;
const USAGE = 2;
/** After a filter: the lines of the full run's cases in docs/interop.md are written. */
const RECORD = '--record';
const EXEC_TIMEOUT_MS = 600_000;

const log = (line: string): void => {
  process.stderr.write(`guest: ${line}\n`);
};

async function outside(): Promise<number> {
  const obstacle = ensurePackages(log);
  if (obstacle !== undefined) {
    log(`SKIPPED: nothing was tested against a real kernel: ${obstacle}`);
    return process.env['CI'] === 'true' ? 1 : 0;
  }
  ensureKernel(log);
  return runInSandbox();
}

async function inside(verb: Verb, args: readonly string[]): Promise<number> {
  knowSlowdown(() => machineTime.slowdown);
  const kernel = ensureKernel(log);
  switch (verb) {
    case 'shell':
      return shell(kernel);
    case 'bench':
      return bench(kernel, args);
    case 'bench-storage':
      return benchStorage(kernel, args);
    case 'bench-rstream':
      return benchRstream(kernel, args);
    case 'exec':
      return exec(kernel, args.join(' '));
    case 'cases':
    case 'full':
      return cases(kernel, choiceOf(verb === 'full', withoutSeed(args)));
  }
}

/** `--seed N` is for the differential cases, which look for it in the environment. */
function withoutSeed(args: readonly string[]): string[] {
  const at = args.indexOf('--seed');
  if (at < 0) return [...args];
  const seed = args[at + 1] ?? '';
  if (!/^\d+$/.test(seed)) throw new Error(`--seed ${seed}: not a number`);
  process.env[SEED_VARIABLE] = seed;
  return args.filter((_, index) => index !== at && index !== at + 1);
}

async function shell(kernel: Kernel): Promise<number> {
  const config = Lab.prepare(kernel);
  log('rxe0 is on eth0; the host is 10.77.0.1 and fd77::1; exit ends the guest');
  await bootShell(config);
  return 0;
}

async function exec(kernel: Kernel, command: string): Promise<number> {
  const guest = (await Lab.start({ kernel, guestCount: 1 })).guest(0);
  const result = await guest.run(command, { timeoutMs: EXEC_TIMEOUT_MS });
  process.stdout.write(result.stdout);
  process.stderr.write(result.stderr);
  await guest.powerOff();
  return result.code ?? 1;
}

/** Which cases run, and whether the table is to say so. */
interface Choice {
  readonly isFull: boolean;
  /** Texts, which "|" separates: a case has one of them in its name. Empty: all. */
  readonly filter: string;
  readonly record: boolean;
}

function choiceOf(isFull: boolean, args: readonly string[]): Choice {
  const filter = args.filter((arg) => arg !== RECORD).join(' ');
  return { isFull, filter, record: filter === '' || args.includes(RECORD) };
}

async function cases(kernel: Kernel, { isFull, filter, record }: Choice): Promise<number> {
  const start = performance.now();
  const guestsOfLanes = filter === '' && availableParallelism() > 1 ? [2, 1] : [2];
  const labs = await Promise.all(
    guestsOfLanes.map((guestCount, lane) => Lab.start({ kernel, guestCount, lane })),
  );
  log(`guests are up after ${secondsSince(start)} s`);
  const [first] = labs;
  if (first === undefined) throw new Error('no lab');
  const version = await counterpartVersion(first.guest(0));
  const isChosen = ({ full = false, name }: Case): boolean =>
    (isFull || !full) && filter.split('|').some((text) => name.includes(text));
  const lanes = labs.map((lab): Lane => {
    const all = allCases(lab, version);
    const recover = (): Promise<void> => lab.recover();
    const cpu = (): number => lab.guests.reduce((sum, guest) => sum + guest.cpuSeconds, 0);
    const guestCount = lab.guests.length;
    return { cases: all.filter(isChosen), guestCount, cpuSeconds: cpu, recover };
  });
  const outcomes = await runCases(lanes, printLine);
  await Promise.all(labs.map((lab) => lab.powerOff()));
  const failed = outcomes.filter(({ passed }) => !passed).length;
  const ofCases = outcomes.reduce((sum, { seconds }) => sum + seconds, 0).toFixed(1);
  const cpu = cpuSeconds('self').toFixed(1);
  printLine(
    `${secondsSince(start)} s in all; ${ofCases} s of cases in ${lanes.length} lane(s); ` +
      `${cpu} s of processors`,
  );
  printLine(`${outcomes.length - failed} passed, ${failed} failed`);
  const allPassed = outcomes.length > 0 && failed === 0;
  if (!allPassed || process.env['DAPL_GUEST_KEEP'] !== undefined) keepEvidence();
  if (record) {
    const write = filter === '' ? interopPage : recordPieces;
    writeInteropPage(write, outcomes, isFull, allCases(first, version));
  }
  return allPassed ? 0 : 1;
}

function writeInteropPage(
  write: typeof interopPage,
  outcomes: readonly Outcome[],
  isFull: boolean,
  all: readonly Case[],
): void {
  const file = join(repositoryRoot, 'docs', 'interop.md');
  const command = `npm run test:guest${isFull ? ':full' : ''}`;
  const run = { command, date: new Date().toISOString().slice(0, 10), revision: revision() };
  const fullRows = all.flatMap(({ full, row }) => (full === true && row ? [row] : []));
  writeFileSync(file, write(outcomes, run, fullRows, readFileSync(file, 'utf8')));
}

/** What was tested: the commit, and whether the files are still its own. */
function revision(): string {
  const git = (...args: string[]): SpawnSyncReturns<string> =>
    spawnSync('git', args, { cwd: repositoryRoot, encoding: 'utf8' });
  const commit = git('rev-parse', '--short=10', 'HEAD');
  if (commit.status !== 0) return 'unknown';
  const isClean = git('diff', '--quiet', 'HEAD', '--', '.', ':!docs/interop.md').status === 0;
  return `${commit.stdout.trim()}${isClean ? '' : ' with changes'}`;
}

function secondsSince(start: number): string {
  return ((performance.now() - start) / 1000).toFixed(1);
}

function printLine(line: string): void {
  process.stdout.write(`${line}\n`);
}

async function counterpartVersion(guest: Guest): Promise<string> {
  const tools = await guest.run("dpkg-query -W -f '${Version}' rdmacm-utils; echo; uname -r");
  const [rdmaCore = '?', kernel = '?'] = tools.stdout.trim().split('\n');
  return `rdma-core ${rdmaCore}, Linux ${kernel}`;
}

/** The sandbox's files end with it: captures and consoles of a failed run are copied out. */
function keepEvidence(): void {
  const target = join(reportDir, new Date().toISOString().replaceAll(':', '-'));
  mkdirSync(target, { recursive: true });
  for (const name of readdirSync(runDir)) {
    if (/\.(pcap|console)$/.test(name)) cpSync(join(runDir, name), join(target, name));
  }
  log(`captures and consoles are in ${target}`);
}

async function main(): Promise<number> {
  const [word = 'cases', ...args] = process.argv.slice(2);
  const verb = VERBS.find((known) => known === word);
  if (verb === undefined) {
    log(`unknown verb ${word}: ${VERBS.join(', ')}`);
    return USAGE;
  }
  if (!inSandbox()) return outside();
  enterSandbox(() => process.exit(INTERRUPTED));
  return inside(verb, args);
}

try {
  process.exit(await main());
} catch (error) {
  log(error instanceof Error ? error.message : String(error));
  process.exit(1);
}
