/**
 * Loads the native parts of providers: those built on this machine (`npm run build:native`),
 * otherwise the package's prebuilds for this platform.
 */
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * This module, or the bundle that it has become a part of: in one of CommonJS there is no
 * `import.meta.url`, but a file name.
 */
const SELF = isBundledAsCommonJs() ? __filename : fileURLToPath(import.meta.url);
const PLATFORM = `${process.platform}-${process.arch}`;

export type LoadedAddon =
  | { readonly addon: unknown; readonly path: string }
  /** Why neither of them could be loaded, in a sentence. */
  | { readonly problem: string };

/**
 * @param name of the file, such as `softroce-port.node`
 * @param roots folders that may hold it, the first that does counts
 */
export function loadAddon(name: string, ...roots: readonly string[]): LoadedAddon {
  const require = createRequire(SELF);
  const places = (roots.length > 0 ? roots : packageRoots(SELF)).flatMap((root) => [
    join(root, 'build/native', name),
    join(root, 'prebuilds', PLATFORM, name),
  ]);
  const problems: string[] = [];
  for (const path of places.filter((each) => existsSync(each))) {
    try {
      return { addon: require(path) as unknown, path };
    } catch (error) {
      problems.push(problemOf(path, error));
    }
  }
  if (problems.length > 0) return { problem: problems.join('; ') };
  return { problem: `${name} was not built, and no prebuild for ${PLATFORM} is in the package` };
}

/**
 * A file of the package.
 * @param path from its root on
 * @returns undefined where this is a bundle, and no package is around
 */
export function packageFile(path: string): string | undefined {
  return packageRoots(SELF)
    .map((root) => join(root, path))
    .find((each) => existsSync(each));
}

/**
 * Where the package may be: around this module; for a bundle, where a program in its folder finds
 * it installed, else in that folder itself, where its `prebuilds` may have been copied to.
 */
function packageRoots(self: string): readonly string[] {
  const folder = dirname(self);
  if (self.endsWith(join('dist', 'providers', 'host', 'load-addon.js'))) {
    return [join(folder, '../../..')];
  }
  try {
    return [dirname(createRequire(self).resolve('dapl/package.json')), folder];
  } catch {
    return [folder];
  }
}

function isBundledAsCommonJs(): boolean {
  return (import.meta as { readonly url?: string }).url === undefined;
}

/** The loader's first line, and what a prebuild needs if that is not here. */
function problemOf(path: string, error: unknown): string {
  const text = error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error);
  // The error of musl's loader for an addon of glibc: the loader of glibc is missing.
  if (/ld-linux[\w.-]*:? /.test(text)) {
    return `${text} (the prebuild is for glibc, which is not here: build it from source)`;
  }
  const needed = /GLIBC_[\d.]+' not found/.test(text) ? requiredGlibc(dirname(path)) : undefined;
  if (needed === undefined) return text;
  return `${text} (the prebuild is for glibc ${needed} or later: build it from source)`;
}

function requiredGlibc(directory: string): string | undefined {
  try {
    const text = readFileSync(join(directory, 'requires.json'), 'utf8');
    return (JSON.parse(text) as { readonly glibc?: string }).glibc;
  } catch {
    return undefined;
  }
}
