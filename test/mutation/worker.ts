/**
 * Runs the tests of an area against one change after another, in a copy of the program: told by its
 * parent which. What a change does to the process, the next one feels; so at the end the tests run
 * without any, and the parent is told whether they still pass.
 */
import type { EventEmitter } from 'node:events';
import Mocha from 'mocha';

export interface Job {
  readonly id: number;
  /** Full titles of the tests that reach it. */
  readonly tests: readonly string[];
}

export type Order =
  | { readonly what: 'cover' }
  | { readonly what: 'run'; readonly jobs: readonly Job[]; readonly all: readonly string[] };

export type Report =
  | { readonly what: 'ready' }
  | {
      readonly what: 'covered';
      /** Full title of each test, and the mutants that it reaches. */
      readonly hits: readonly (readonly [string, readonly number[]])[];
      readonly slow: readonly string[];
      /** Reached as modules are loaded. */
      readonly atLoad: readonly number[];
    }
  | { readonly what: 'failed'; readonly tests: readonly string[] }
  | { readonly what: 'ran'; readonly id: number; readonly killed: boolean }
  | { readonly what: 'done'; readonly clean: boolean };

const atLoad = new Set<number>();
const state: { active: number; hits: Set<number> | undefined } = { active: -1, hits: atLoad };
Object.assign(globalThis, { __mutation: state });

const TEST_TIMEOUT_MS = 10_000;
/** A test that takes longer is not what notices a mutant, unless nothing else reaches it. */
const QUICK_MS = 1000;
const mocha = new Mocha({ timeout: TEST_TIMEOUT_MS, reporter: class {} as never });
mocha.cleanReferencesAfterRun(false);

const tell = (report: Report): void => void process.send?.(report);

/** Of each suite by itself: once files are loaded, `mocha.bail` reaches none of theirs. */
function setBail(suite: Mocha.Suite, bail: boolean): void {
  suite.bail(bail);
  for (const child of suite.suites) setBail(child, bail);
}

/** Full titles of the tests that failed; one at most, unless all run at their leisure. */
async function run(
  titles: readonly string[] | undefined,
  watch: (runner: EventEmitter) => void = () => undefined,
): Promise<string[]> {
  const exactly = (titles ?? []).map((title) => title.replace(/[$()*+.?[\\\]^{|}]/g, '\\$&'));
  setBail(mocha.suite, titles !== undefined);
  mocha.grep(titles === undefined ? /./ : new RegExp(`^(?:${exactly.join('|')})$`));
  const failed: string[] = [];
  return new Promise((resolve) => {
    const runner = mocha.run(() => resolve(failed));
    runner.on('fail', (test) => failed.push(test.fullTitle()));
    watch(runner);
  });
}

/** Which changes each test reaches; those of hooks around all tests count for each. */
async function cover(): Promise<void> {
  const hits = new Map<string, Set<number>>();
  const slow: string[] = [];
  const around = (state.hits = new Set());
  const failed = await run(undefined, (runner) => {
    runner.on('test', (test: Mocha.Test) => {
      state.hits = new Set();
      hits.set(test.fullTitle(), state.hits);
    });
    runner.on('test end', (test: Mocha.Test) => {
      if ((test.duration ?? 0) > QUICK_MS) slow.push(test.fullTitle());
    });
    runner.on('suite end', () => (state.hits = around));
  });
  state.hits = undefined;
  if (failed.length > 0) tell({ what: 'failed', tests: failed });
  const rows = [...hits].map(([title, ids]): [string, number[]] => [title, [...ids, ...around]]);
  tell({ what: 'covered', hits: rows, slow, atLoad: [...atLoad] });
}

async function judge(jobs: readonly Job[], all: readonly string[]): Promise<void> {
  for (const { id, tests } of jobs) {
    state.active = id;
    const failed = await run(tests).catch(() => ['it threw']);
    state.active = -1;
    tell({ what: 'ran', id, killed: failed.length > 0 });
  }
  tell({ what: 'done', clean: (await run(all)).length === 0 });
}

process.on('disconnect', () => process.exit());
process.on('message', (order: Order) => {
  void (order.what === 'cover' ? cover() : judge(order.jobs, order.all));
});

for (const file of process.argv.slice(2)) mocha.addFile(file);
await mocha.loadFilesAsync();
state.hits = undefined;
tell({ what: 'ready' });
