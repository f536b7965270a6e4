/** The addon and the libraries behind it: looked up when they are first needed. */
import { loadAddon } from '../host/index.js';
import { addonMissing, librariesMissing, type MissingLibrary } from './errors.js';
import type { VerbsAddon } from './native-addon.js';
import type { LibraryPaths } from './options.js';

let addon: VerbsAddon | undefined;

/** What is loaded stays loaded. @throws SpiError('ENODEV') what is missing, and how to get it */
export function openLibraries(paths: LibraryPaths = {}): VerbsAddon {
  const opened = openAddon();
  const missing: MissingLibrary[] = [];
  for (const [kind, name] of [
    ['verbs', 'libibverbs.so.1'],
    ['rdmacm', 'librdmacm.so.1'],
  ] as const) {
    const problem = opened.load(kind, paths[kind]);
    if (problem !== undefined) missing.push({ name: paths[kind] ?? name, problem });
  }
  if (missing.length > 0) throw librariesMissing(missing);
  return opened;
}

function openAddon(): VerbsAddon {
  if (addon !== undefined) return addon;
  const result = loadAddon('verbs.node');
  if ('problem' in result) throw addonMissing(result.problem);
  addon = result.addon as VerbsAddon;
  return addon;
}
