/** The addon and the libraries behind it: looked up when they are first needed. */
import { librariesMissing, type MissingLibrary } from './errors.js';
import { loadVerbsAddon, type VerbsAddon } from './native-addon.js';
import type { LibraryPaths } from './options.js';

/** What is loaded stays loaded. @throws SpiError('ENODEV') what is missing, and how to get it */
export function openLibraries(paths: LibraryPaths = {}): VerbsAddon {
  const addon = loadVerbsAddon();
  const missing: MissingLibrary[] = [];
  for (const [kind, name] of [
    ['verbs', 'libibverbs.so.1'],
    ['rdmacm', 'librdmacm.so.1'],
  ] as const) {
    const problem = addon.load(kind, paths[kind]);
    if (problem !== undefined) missing.push({ name: paths[kind] ?? name, problem });
  }
  if (missing.length > 0) throw librariesMissing(missing);
  return addon;
}
