/** Another commit of this repository, built in a directory of its own that goes when we go. */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../../', import.meta.url));

export interface Worktree {
  /** The benchmark's worker, this very one, that imports the other commit's library. */
  readonly worker: string;
  readonly commit: string;
  /** What that commit's package can be imported by: `dapl`, `dapl/spi`, ... */
  readonly entries: readonly string[];
  remove(): void;
}

/**
 * The library of that commit under this benchmark: both sides are measured by the same instrument,
 * which needs but the public API.
 * @param bench whose worker: a folder of dist/bench
 * @throws Error when there is no such commit, or when it does not build
 */
export function buildWorktree(revision: string, bench = 'compare'): Worktree {
  const commit = git('rev-parse', '--verify', '--short', `${revision}^{commit}`);
  const parent = mkdtempSync(join(tmpdir(), 'dapl-bench-'));
  const dir = join(parent, commit);
  const remove = (): void => {
    spawnSync('git', ['worktree', 'remove', '--force', dir], { cwd: root });
    rmSync(parent, { recursive: true, force: true });
    spawnSync('git', ['worktree', 'prune'], { cwd: root });
  };
  // However we end; what a signal ends by default ends here as it would there.
  process.once('exit', remove);
  for (const [signal, status] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const) {
    process.once(signal, () => process.exit(status));
  }
  git('worktree', 'add', '--detach', dir, commit);
  installPackages(dir);
  // The library and its packet port; not all that build.mjs makes.
  run(process.execPath, ['node_modules/typescript/bin/tsc', '-b', 'tsconfig.build.json'], dir);
  const native = 'providers/softroce/native';
  run(process.execPath, [join(native, 'build.mjs'), native], dir);
  const copy = join(dir, 'dist/bench');
  rmSync(copy, { recursive: true, force: true });
  cpSync(join(root, 'dist/bench'), copy, { recursive: true });
  const worker = join(copy, bench, 'worker.js');
  if (!existsSync(worker)) throw new Error(`${revision}: no worker at ${worker}`);
  return { worker, commit, entries: entriesOf(dir), remove };
}

function entriesOf(dir: string): string[] {
  const text = readFileSync(join(dir, 'package.json'), 'utf8');
  const { name, exports } = JSON.parse(text) as { name: string; exports: Record<string, unknown> };
  return Object.keys(exports).map((entry) => join(name, entry));
}

/** Ours, where that commit has the same; its own otherwise. */
function installPackages(dir: string): void {
  const lockOf = (tree: string): string => readFileSync(join(tree, 'package-lock.json'), 'utf8');
  if (lockOf(dir) === lockOf(root)) {
    symlinkSync(join(root, 'node_modules'), join(dir, 'node_modules'), 'dir');
  } else run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], dir);
}

function git(...args: readonly string[]): string {
  return run('git', args, root).trim();
}

function run(command: string, args: readonly string[], cwd: string): string {
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd, encoding: 'utf8' });
  if (error) throw error;
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} failed:\n${stderr}${stdout}`);
  return stdout;
}
