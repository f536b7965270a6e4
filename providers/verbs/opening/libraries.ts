/** The addon and the libraries behind it: looked up when they are first needed. */
import { token } from '../../../core/spi/index.js';
import type { CmNative } from '../addon/rdmacm.js';
import { librariesMissing, type MissingLibrary } from '../system/errors.js';
import type { UmadNative } from '../addon/umad.js';
import { loadVerbsAddon, type VerbsAddon } from '../addon/native-addon.js';
import type { LibraryPaths } from './options.js';

/** All of the addon's calls. */
export type Addon = VerbsAddon & CmNative & UmadNative;
/** The addon, with its libraries loaded. */
export const ADDON = token<Addon>('verbs/addon');

/**
 * Opens the libraries. Those that are loaded stay loaded.
 * @throws SpiError('ENODEV') what is missing, and how to get it
 */
export function openLibraries(paths: LibraryPaths = {}): Addon {
  const addon = loadVerbsAddon() as Addon;
  const missing: MissingLibrary[] = [];
  const lookUp = (kind: keyof LibraryPaths, name: string): void => {
    const problem = addon.load(kind, paths[kind]);
    if (problem !== undefined) missing.push({ name, problem: withoutName(problem, name) });
  };
  lookUp('verbs', paths.verbs ?? 'libibverbs.so.1');
  lookUp('rdmacm', paths.rdmacm ?? 'librdmacm.so.1');
  if (paths.umad !== undefined) lookUp('umad', paths.umad);
  if (missing.length > 0) throw librariesMissing(missing);
  return addon;
}

/** The loader begins with the name, which the sentence has already. */
function withoutName(problem: string, name: string): string {
  const text = problem.startsWith(name) ? problem.slice(name.length) : problem;
  return text.replace(/^[:\s]+/, '');
}
