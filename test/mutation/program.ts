/**
 * Mutants of an area of the program: a copy of what is compiled holds all of them, processes that
 * have it loaded try one after the other. One that hangs or dies has noticed its mutant.
 */
import { type ChildProcess, fork } from 'node:child_process';
import {
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import type { Area } from './areas.js';
import { Instrumented, type Mutant } from './operators.js';
import type { Job, Order, Report } from './worker.js';

export interface Options {
  /** Share of the mutants to try, above 0 and up to 1. */
  readonly sample: number;
  /** Which of them, where it is not all. */
  readonly seed: number;
  readonly jobs: number;
  /** No mutant is begun after that. */
  readonly deadlineMs: number;
}

export interface Outcome {
  readonly tried: number;
  readonly survivors: readonly Mutant[];
  readonly killed: readonly Mutant[];
  /** Mutants of what runs once, as a module is loaded: tables have tests of their own. */
  readonly atLoad: number;
  readonly notTried: number;
}

const DIST = join(import.meta.dirname, '../..');
const PARTS = ['bench', 'core', 'plugins', 'providers', 'samples', 'test'];
const LINKED = ['package.json', 'build', 'docs'];
const BATCH = 24;
/** Of one mutant: longer is a loop without an end. */
const HANG_MS = 30_000;
const HEAP_MB = 768;

export async function tryArea(area: Area, options: Options): Promise<Outcome> {
  const copy = mkdtempSync(join(DIST, 'mutants-'));
  try {
    const root = join(copy, 'dist');
    for (const part of PARTS) cpSync(join(DIST, part), join(root, part), { recursive: true });
    makePackage(copy);
    return await new Trial(root, area, options).run();
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

/**
 * Makes a folder a package of its own around its `dist`: what is imported there by the package's
 * name is the copy's, mutants and all. Documents, and what was built for this machine, are linked.
 */
export function makePackage(copy: string): void {
  for (const part of LINKED) symlinkSync(join(DIST, '..', part), join(copy, part));
}

class Trial {
  private readonly mutants: Mutant[] = [];
  private readonly killed: Mutant[] = [];
  private readonly survivors: Mutant[] = [];
  private readonly queue: Job[][] = [];
  private readonly specs: readonly string[];
  private tests: readonly string[] = [];

  constructor(
    private readonly root: string,
    area: Area,
    private readonly options: Options,
  ) {
    for (const file of sourcesOf(root, area)) this.plant(file);
    this.specs = area.tests.flatMap((test) => testsOf(join(root, 'test/unit', test)));
  }

  async run(): Promise<Outcome> {
    const reached = await this.cover();
    const chosen = this.mutants.filter(({ id }) => isChosen(id, this.options));
    const jobs: Job[] = [];
    for (const mutant of chosen) {
      const tests = reached.get(mutant.id);
      if (tests === undefined) this.survivors.push(mutant);
      else if (tests.length > 0) jobs.push({ id: mutant.id, tests });
    }
    const atLoad = chosen.length - jobs.length - this.survivors.length;
    for (let i = 0; i < jobs.length; i += BATCH) this.queue.push(jobs.slice(i, i + BATCH));
    await Promise.all(Array.from({ length: this.options.jobs }, async () => this.work()));
    const tried = this.killed.length + this.survivors.length;
    const { killed, survivors } = this;
    return { tried, survivors, killed, atLoad, notTried: chosen.length - atLoad - tried };
  }

  private plant(file: string): void {
    const path = join(this.root, file);
    const { text, mutants } = new Instrumented(
      file.replace(/\.js$/, '.ts'),
      readFileSync(path, 'utf8'),
      this.mutants.length,
    );
    this.mutants.push(...mutants);
    writeFileSync(path, text);
  }

  /** By mutant, the tests that reach it; none for what runs as a module is loaded. */
  private async cover(): Promise<Map<number, string[]>> {
    const reached = new Map<number, string[]>();
    const { child, next } = start(this.specs);
    try {
      await next('ready');
      send(child, { what: 'cover' });
      const { hits, slow, atLoad } = await next('covered');
      for (const id of atLoad) reached.set(id, []);
      const isSlow = new Set(slow);
      this.tests = hits.map(([title]) => title).filter((title) => !isSlow.has(title));
      const note = (title: string, ids: readonly number[]): void => {
        for (const id of ids) {
          const tests = reached.get(id) ?? [];
          if (isSlow.has(title) && tests.length > 0) continue;
          reached.set(id, [...tests, title]);
        }
      };
      for (const [title, ids] of hits) if (!isSlow.has(title)) note(title, ids);
      for (const [title, ids] of hits) if (isSlow.has(title)) note(title, ids);
    } finally {
      child.kill('SIGKILL');
    }
    return reached;
  }

  private async work(): Promise<void> {
    for (;;) {
      if (performance.now() > this.options.deadlineMs) return;
      const batch = this.queue.shift();
      if (batch === undefined) return;
      const { verdicts, left, clean } = await tryBatch(this.specs, batch, this.tests);
      if (!clean && batch.length > 1) {
        // One of them has spoiled the process for those behind it.
        const half = batch.length >> 1;
        this.queue.unshift(batch.slice(0, half), batch.slice(half));
        continue;
      }
      if (left.length > 0) this.queue.unshift(left);
      for (const [id, killed] of verdicts) {
        const mutant = this.mutants[id] as Mutant;
        if (killed) this.killed.push(mutant);
        else this.survivors.push(mutant);
      }
    }
  }
}

interface BatchResult {
  readonly verdicts: ReadonlyMap<number, boolean>;
  /** Jobs behind one that the process did not outlive. */
  readonly left: Job[];
  readonly clean: boolean;
}

/** @param all every test, to see in the end whether they still pass */
async function tryBatch(
  specs: readonly string[],
  batch: readonly Job[],
  all: readonly string[],
): Promise<BatchResult> {
  const verdicts = new Map<number, boolean>();
  const { child, next } = start(specs);
  try {
    await next('ready');
    send(child, { what: 'run', jobs: batch, all });
    for (const { id } of batch) verdicts.set(id, (await next('ran')).killed);
    return { verdicts, left: [], clean: (await next('done')).clean };
  } catch {
    const fatal = batch.findIndex(({ id }) => !verdicts.has(id));
    const job = batch[fatal];
    if (job !== undefined) verdicts.set(job.id, true);
    return { verdicts, left: fatal < 0 ? [] : batch.slice(fatal + 1), clean: true };
  } finally {
    child.kill('SIGKILL');
  }
}

type ReportOf<W> = Extract<Report, { readonly what: W }>;

interface Running {
  readonly child: ChildProcess;
  /** The next report of a kind; rejects when the process ends or says nothing for too long. */
  readonly next: <W extends Report['what']>(what: W) => Promise<ReportOf<W>>;
}

function start(specs: readonly string[]): Running {
  const child = fork(join(import.meta.dirname, 'worker.js'), [...specs], {
    execArgv: [`--max-old-space-size=${HEAP_MB}`],
    env: { ...process.env, DAPL_ASSERT: '1' },
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
  const reports: Report[] = [];
  let wake = (): void => undefined;
  let over = false;
  child.on('message', (report: Report) => {
    reports.push(report);
    wake();
  });
  child.on('exit', () => {
    over = true;
    wake();
  });
  const next: Running['next'] = async (what) => {
    const deadline = performance.now() + (what === 'covered' ? 10 : 1) * HANG_MS;
    for (;;) {
      const report = reports.shift();
      if (report?.what === what) return report as never;
      if (report?.what === 'failed') {
        throw new Error(`these fail without a mutation: ${report.tests.join('; ')}`);
      }
      if (report !== undefined) throw new Error(`${report.what}, where ${what} was awaited`);
      const leftMs = deadline - performance.now();
      if (over || leftMs <= 0) throw new Error(`no ${what}`);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, leftMs);
        wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  };
  return { child, next };
}

const send = (child: ChildProcess, order: Order): void => void child.send(order);

/** Compiled files of an area, from the root. */
export function sourcesOf(root: string, { files, except = [] }: Area): string[] {
  const isExcept = (file: string): boolean => except.some((one) => file.startsWith(`${one}/`));
  return files.flatMap((place) => sourcesAt(root, place)).filter((file) => !isExcept(file));
}

function sourcesAt(root: string, place: string): string[] {
  const path = join(root, place);
  if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) return [`${place}.js`];
  const files = readdirSync(path, { recursive: true, encoding: 'utf8' });
  return files
    .filter((file) => file.endsWith('.js') && file !== 'index.js')
    .sort()
    .map((file) => `${place}/${file}`);
}

function testsOf(path: string): string[] {
  if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) return [`${path}.test.js`];
  return readdirSync(path)
    .filter((file) => /(?<!\.long|docs)\.test\.js$/.test(file))
    .sort()
    .map((file) => join(path, file));
}

/** A hash of the number: a sample is the same again with the same seed. */
function isChosen(id: number, { sample, seed }: Options): boolean {
  const hash = Math.imul((id + 1) ^ Math.imul(seed, 0x9e3779b1), 0x85ebca6b);
  return ((hash ^ (hash >>> 15)) >>> 0) / 2 ** 32 < sample;
}
