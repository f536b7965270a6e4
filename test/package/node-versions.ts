/** Versions of Node, from npm's packages of it. */
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT, succeed } from './packed.js';

const KEPT = join(ROOT, 'build/nodes');

/**
 * @param version of Node: the newest of a major one by its number alone
 * @param arch x64 or arm64
 * @returns the path of the program
 */
export function nodeOf(version: string, arch: string): string {
  const home = join(KEPT, `${version}-${arch}`);
  const program = join(home, 'bin/node');
  if (existsSync(program)) return program;
  const loading = `${home}.loading`;
  rmSync(loading, { recursive: true, force: true });
  mkdirSync(loading, { recursive: true });
  const args = ['pack', '--json', '--pack-destination', loading];
  const stdout = succeed('npm', [...args, `node-linux-${arch}@${version}`]);
  const [{ filename }] = JSON.parse(stdout) as [{ readonly filename: string }];
  succeed('tar', ['-xzf', join(loading, filename), '--strip-components=1', '-C', loading]);
  rmSync(join(loading, filename));
  rmSync(home, { recursive: true, force: true });
  renameSync(loading, home);
  return program;
}
