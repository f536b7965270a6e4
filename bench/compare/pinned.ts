/** A core for each side, where that can be had: two that spin must not share one. */
import { spawnSync } from 'node:child_process';
import { availableParallelism } from 'node:os';

const canPin =
  availableParallelism() >= 2 && spawnSync('taskset', ['--version']).error === undefined;

/** The command on that core. */
export function pinned(core: number, command: readonly string[]): readonly string[] {
  return canPin ? ['taskset', '--cpu-list', String(core), ...command] : command;
}

/** A process, with all its threads; without a core it may run on all. */
export function pin(pid: number | undefined, core?: number): void {
  if (!canPin || pid === undefined) return;
  const cores = core === undefined ? `0-${availableParallelism() - 1}` : String(core);
  spawnSync('taskset', ['--all-tasks', '--cpu-list', '--pid', cores, String(pid)]);
}
