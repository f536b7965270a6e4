import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';

/** The repository's root, found from the compiled file upwards. */
export const repositoryRoot: string = findRoot(import.meta.dirname);

/** Sources that are not TypeScript (the guest's two init scripts). */
export const sourceDir: string = join(repositoryRoot, 'test', 'guest');

/** Downloads and what is built from them; safe to delete between runs. */
export const cacheDir: string =
  process.env['DAPL_GUEST_CACHE'] ??
  join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'dapl-guest');

/** Where a failed run leaves its captures and consoles. Ignored by git. */
export const reportDir: string = join(repositoryRoot, '.cache', 'guest-report');

function findRoot(start: string): string {
  for (let dir = start; dir !== dirname(dir); dir = dirname(dir)) {
    if (existsSync(join(dir, 'test', 'guest', 'run.sh'))) return dir;
  }
  throw new Error(`no test/guest/run.sh above ${start}`);
}
