/** Runs iscsi-test-cu of libiscsi, one process a test: a crash or a hang is that test's alone. */
import { execFile, spawn, spawnSync } from 'node:child_process';
import { promisify } from 'node:util';
import { type Outcome, outcomeOf, testNames } from './outcome.js';
import { type DiskOptions, serveDisk } from './target.js';

const PROGRAM = 'iscsi-test-cu';
/** Tests sleep for some seconds after resets; what takes longer hangs. */
const TEST_TIMEOUT_MS = 120_000;

export interface Needs extends Partial<DiskOptions> {
  /** Sessions that the program has with the disk; default 1. */
  readonly paths?: number;
}

const NEEDS: Readonly<Record<string, Needs>> = {
  ReadOnly: { isReadOnly: true },
  // It takes logical blocks for physical ones.
  'GetLBAStatus.UnmapSingle': { blockBytes: 4096 },
  MultipathIO: { paths: 2 },
};

/** What a test needs of the disk, or of the command line. */
export function needsOf(name: string): Needs {
  return NEEDS[name] ?? NEEDS[name.split('.')[0]!] ?? {};
}

export interface TestResult extends Outcome {
  /** Without the family: `Read10.Simple`. */
  readonly name: string;
  readonly elapsedMs: number;
  readonly output: string;
  readonly notes: readonly string[];
}

/** Why nothing can run, or undefined. */
export function missingProgram(): string | undefined {
  const isThere = spawnSync(PROGRAM, ['-l'], { stdio: 'ignore' }).error === undefined;
  return isThere ? undefined : `${PROGRAM} is not installed: apt-get install libiscsi-bin`;
}

export async function listTests(): Promise<string[]> {
  const { stdout } = await promisify(execFile)(PROGRAM, ['-l']);
  return testNames(stdout).map((name) => name.replace('ALL.', ''));
}

export async function runTest(name: string, blockBytes: number): Promise<TestResult> {
  const { paths = 1, ...needs } = needsOf(name);
  const disk = await serveDisk({ blockBytes, ...needs });
  const begin = performance.now();
  const urls = new Array<string>(paths).fill(disk.url);
  // -V says why a test has nothing to do: some say so in no other way.
  const args = ['-d', '-n', '-V', '-t', `ALL.${name}`, ...urls];
  const child = spawn(PROGRAM, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  const killer = setTimeout(() => child.kill('SIGKILL'), TEST_TIMEOUT_MS);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  }
  const [exitCode, signal] = await new Promise<[number | null, string | null]>((resolve) =>
    child.on('close', (...how) => resolve(how)),
  );
  clearTimeout(killer);
  await disk.close();
  const run = { output, exitCode: exitCode ?? undefined, signal: signal ?? undefined };
  const elapsedMs = performance.now() - begin;
  return { name, ...outcomeOf(run), elapsedMs, output, notes: disk.notes };
}
