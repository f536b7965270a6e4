/** The registry of this machine: dat.conf, and provider packages that are imported by name. */
import { realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, isAbsolute, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { isMainThread, threadId } from 'node:worker_threads';
import { checkParameter } from '../../core/errors/guards.js';
import {
  createRegistry,
  type Ia,
  type OpenIaOptions,
  type OpenTarget,
  type Registry,
} from '../../core/index.js';
import type { ConfiguredProvider } from '../../core/spi/index.js';
import { capture } from '../pcap/index.js';
import { readDatConf } from './dat-conf-file.js';
import { type PackageOptions, packageProvider } from './package-provider.js';

// Provider packages by the lib_path of a line of dat.conf.

/**
 * Imports a provider: a package entry (`dapl/providers/softroce`, `@acme/dapl-provider`), which is
 * looked for from this package and then from the program, or a file, whose relative path starts
 * with a dot and is taken from the folder of dat.conf. The working directory has no say in it: a
 * program that is started in somebody else's folder would run that one's code.
 * @throws Error that says why it cannot be loaded
 */
export async function loadProvider(libPath: string, datConfPath: string): Promise<unknown> {
  if (/\.(?:so|dll|dylib)(?:\.|$)/.test(libPath)) {
    throw new Error('a shared object of another DAT library; providers here are modules');
  }
  if (isAbsolute(libPath) || /^\.\.?[/\\]/.test(libPath)) {
    return import(pathToFileURL(resolve(dirname(datConfPath), libPath)).href);
  }
  const own = await importOrMiss(libPath);
  if (own.module !== undefined) return own.module;
  const program = programFile();
  if (program === undefined) throw own.error;
  let path: string;
  try {
    path = createRequire(pathToFileURL(program)).resolve(libPath);
  } catch {
    throw own.error;
  }
  return import(pathToFileURL(path).href);
}

/** Options of Node with which the first argument is no program. */
const CODE_AT_HAND = /^(?:-(?:e|p|pe)|--(?:eval|print)(?:=.*)?)$/s;

/** The file that Node was started with, wherever a link to it stands. A REPL has none. */
function programFile(): string | undefined {
  const [, program] = process.argv;
  if (program === undefined || !isAbsolute(program)) return undefined;
  if (process.execArgv.some((option) => CODE_AT_HAND.test(option))) return undefined;
  try {
    return realpathSync(program);
  } catch {
    return undefined;
  }
}

/** @throws what the module itself throws; that it is not there is an answer */
async function importOrMiss(
  specifier: string,
): Promise<{ readonly module?: unknown; readonly error?: unknown }> {
  try {
    return { module: await import(specifier) };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const missing = ['ERR_MODULE_NOT_FOUND', 'ERR_PACKAGE_PATH_NOT_EXPORTED'];
    if (code === undefined || !missing.includes(code)) throw error;
    return { error };
  }
}

/**
 * A registry over a dat.conf, read now.
 * @param path of the file; default what DAT_OVERRIDE names, else `/etc/dat.conf`
 * @throws DatError DAT_INTERNAL_ERROR when a file that was named cannot be read
 */
export async function loadRegistry(path?: string): Promise<Registry> {
  const datConf = await readDatConf(path);
  const { path: file = '' } = datConf;
  const load = (libPath: string): Promise<unknown> => loadProvider(libPath, file);
  return createRegistry({ datConf, load, decorate: captureIfAsked });
}

let system: Promise<Registry> | undefined;

/**
 * The registry of this process, which `openIa` asks for names. dat.conf is read when it is first
 * needed.
 */
export function systemRegistry(): Promise<Registry> {
  system ??= loadRegistry().catch((error: unknown) => {
    system = undefined;
    throw error;
  });
  return system;
}

/**
 * Opens an interface adapter (dat_ia_open, dat_ia_openv): of a provider at hand, by a name that
 * dat.conf or `systemRegistry().register` knows, or by the name of a package, with `from`.
 * @throws DatError as `Registry.openIa`
 */
export async function openIa(
  target: OpenTarget,
  options: OpenIaOptions & PackageOptions = {},
): Promise<Ia> {
  const { from, iaParams, ...rest } = options;
  if (from === undefined && iaParams === undefined) {
    return (await registryFor(target)).openIa(target, options);
  }
  checkParameter('openIa', 1, 'name', target, typeof target === 'string', 'text, where `from` is');
  const provider = await packageProvider(target as string, {
    ...(from !== undefined && { from }),
    ...(iaParams !== undefined && { iaParams }),
  });
  return createRegistry({ decorate: captureIfAsked }).openIa(provider, rest);
}

/** A provider at hand needs no dat.conf, not even one that cannot be read. */
async function registryFor(target: unknown): Promise<Registry> {
  const isName =
    typeof target === 'string' || (typeof target === 'object' && !!target && 'name' in target);
  return isName ? systemRegistry() : createRegistry({ decorate: captureIfAsked });
}

// DAPL_PCAP: the file that the packets of all devices of this process go to. `%p` in it stands for
// the process, and for the worker thread if there is one: each needs a file of its own.

/** @returns the provider itself unless the variable is set */
function captureIfAsked(provider: ConfiguredProvider): ConfiguredProvider {
  const file = process.env['DAPL_PCAP'];
  if (file === undefined || file === '') return provider;
  const writer = isMainThread ? String(process.pid) : `${String(process.pid)}-${String(threadId)}`;
  return capture(provider, { file: file.replaceAll('%p', writer) });
}
