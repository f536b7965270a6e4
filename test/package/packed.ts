/** The package as `npm pack` makes it from what was built, once for all tests of a process. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

export const ROOT = join(import.meta.dirname, '../../..');

export interface Manifest {
  readonly version: string;
  readonly exports: Readonly<Record<string, string | { types: string; default: string }>>;
  readonly bin: Readonly<Record<string, string>>;
  readonly files: readonly string[];
  readonly dependencies: Readonly<Record<string, string>>;
}
export const MANIFEST = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Manifest;

/** The names by which programs import what the package has, with the files of their types. */
export function entriesWithTypes(): [name: string, types: string][] {
  return Object.entries(MANIFEST.exports).flatMap(([name, entry]) =>
    typeof entry === 'string' ? [] : [[`dapl${name.slice(1)}`, entry.types]],
  );
}
export const ENTRIES = entriesWithTypes().map(([name]) => name);

export interface Packed {
  readonly tarball: string;
  readonly paths: ReadonlySet<string>;
  /** Of all its files. */
  readonly unpackedBytes: number;
}

let packed: Promise<Packed> | undefined;

/** Without the scripts of npm, which would put bundles in the place of what other tests run. */
export function pack(): Promise<Packed> {
  packed ??= packCopy();
  return packed;
}

async function packCopy(): Promise<Packed> {
  // Where the sources of the addons have changed since, these are built anew.
  succeed(process.execPath, ['.ci/prebuild.mjs', `linux-${process.arch}`]);
  const directory = mkdtempSync(join(tmpdir(), 'dapl-packed-'));
  process.once('exit', () => rmSync(directory, { recursive: true }));
  const copy = join(directory, 'copy');
  mkdirSync(copy);
  // All that `files` may name, of which npm takes what it does name, and what it takes anyhow.
  const names = [...MANIFEST.files, 'package.json', 'README.md', 'LICENSE'];
  for (const name of new Set(names.map((path) => path.split('/')[0] ?? path))) {
    if (name !== 'dist') cpSync(join(ROOT, name), join(copy, name), { recursive: true });
  }
  succeed(process.execPath, [join(ROOT, '.ci/pack.mjs'), join(copy, 'dist')]);
  const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', directory];
  const [result] = JSON.parse(succeed('npm', args, copy)) as [
    {
      readonly filename: string;
      readonly unpackedSize: number;
      readonly files: readonly { readonly path: string }[];
    },
  ];
  const paths = new Set(result.files.map(({ path }) => path));
  const { filename, unpackedSize: unpackedBytes } = result;
  return { tarball: join(directory, filename), paths, unpackedBytes };
}

/** The tarball unpacked into a project, with the dependencies that it names and others. */
export async function install(project: string, ...others: readonly string[]): Promise<void> {
  const { tarball } = await pack();
  const modules = join(project, 'node_modules');
  mkdirSync(join(modules, 'dapl'), { recursive: true });
  succeed('tar', ['-xzf', tarball, '--strip-components=1', '-C', join(modules, 'dapl')]);
  for (const name of [...Object.keys(MANIFEST.dependencies), ...others]) {
    mkdirSync(dirname(join(modules, name)), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules', name), join(modules, name));
  }
}

/** @returns what the command writes */
export function succeed(command: string, args: readonly string[], cwd = ROOT): string {
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd, encoding: 'utf8' });
  assert.equal(status, 0, `${command} ${args.join(' ')}: ${error?.message ?? stderr + stdout}`);
  return stdout;
}
