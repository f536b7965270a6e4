/** The addon and the libraries behind it: looked up when they are first needed. */
import type { CmNative } from './cm-native.js';
import { librariesMissing, type MissingLibrary } from './errors.js';
import type { UmadNative } from './mad-native.js';
import { loadVerbsAddon, type VerbsAddon } from './native-addon.js';
import type { LibraryPaths } from './options.js';

/** All of the addon's calls. */
export type Addon = VerbsAddon & CmNative & UmadNative;

/** What is loaded stays loaded. @throws SpiError('ENODEV') what is missing, and how to get it */
export function openLibraries(paths: LibraryPaths = {}): Addon {
  const addon = loadVerbsAddon() as Addon;
  const missing: MissingLibrary[] = [];
  for (const [kind, name] of [
    ['verbs', 'libibverbs.so.1'],
    ['rdmacm', 'librdmacm.so.1'],
  ] as const) {
    const problem = addon.load(kind, paths[kind]);
    if (problem !== undefined) missing.push({ name: paths[kind] ?? name, problem });
  }
  const unusable = paths.umad === undefined ? undefined : addon.load('umad', paths.umad);
  if (unusable !== undefined) missing.push({ name: paths.umad ?? '', problem: unusable });
  if (missing.length > 0) throw librariesMissing(missing);
  return addon;
}
