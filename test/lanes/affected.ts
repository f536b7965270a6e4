/**
 * Which tests a change concerns: the import graph of the compiled tree, followed from what changed
 * to the tests. Pure: sources come in, names go out.
 */
import { posix } from 'node:path';

/** Text of compiled modules by path, relative to dist. */
export type Modules = ReadonlyMap<string, string>;

const SPECIFIER = /\b(?:from|import)\s*\(?\s*['"]([^'"\n]+)['"]/g;

/** Importers by the module that they import; `dapl/…` is looked up in the package's entries. */
export function importers(
  modules: Modules,
  entries: ReadonlyMap<string, string>,
): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const [path, text] of modules) {
    for (const [, specifier = ''] of text.matchAll(SPECIFIER)) {
      const target = specifier.startsWith('.')
        ? posix.join(posix.dirname(path), specifier)
        : entries.get(specifier);
      if (target === undefined || !modules.has(target)) continue;
      const known = found.get(target);
      if (known) known.push(path);
      else found.set(target, [path]);
    }
  }
  return found;
}

/** Tests that import what changed, directly or through others; the closest first. */
export function affectedTests(
  changed: readonly string[],
  importersOf: ReadonlyMap<string, readonly string[]>,
): string[] {
  const seen = new Set(changed);
  for (const path of seen) {
    for (const importer of importersOf.get(path) ?? []) seen.add(importer);
  }
  return [...seen].filter((path) => path.endsWith('.test.js'));
}
