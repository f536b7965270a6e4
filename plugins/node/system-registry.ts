/** The registry of this machine: dat.conf, and provider packages that are imported by name. */
import { constants } from 'node:buffer';
import { realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, isAbsolute, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { isMainThread, threadId } from 'node:worker_threads';
import { checkParameter } from '../../core/errors/guards.js';
import {
  createRegistry as createPlainRegistry,
  type Ia,
  type OpenIaOptions,
  type OpenTarget,
  type Platform,
  type Registry,
  type RegistryOptions,
} from '../../core/index.js';
import type { ConfiguredProvider } from '../../core/spi/index.js';
import { capture } from '../pcap/index.js';
import { readDatConf } from './dat-conf-file.js';
import { defaultLogger } from './log/default-logger.js';
import { winstonLoaded } from './log/winston.js';
import { type PackageOptions, packageProvider } from './package-provider.js';

// Loads provider packages by the lib_path of a line in dat.conf.

/**
 * Imports a provider. A package entry (`dapl/providers/softroce`, `@acme/dapl-provider`) is
 * resolved from this package and then from the program. A file is a relative path that starts with
 * a dot, from the folder of dat.conf. The working directory does not matter: otherwise a program
 * started in another user's folder would run that user's code.
 * @throws Error that says why the provider cannot be loaded
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

/** Options of Node after which the first argument is no program. */
const CODE_AT_HAND = /^(?:-(?:e|p|pe)|--(?:eval|print)(?:=.*)?)$/s;

/** The file that Node was started with, links resolved. A REPL has none. */
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

/** Imports a module. A missing module is a result. @throws whatever the module itself throws */
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

const PLATFORM: Platform = {
  defaultLogger,
  loggersReady: winstonLoaded,
  maxViewBytes: constants.MAX_LENGTH,
};

/**
 * A registry; DAPL_LOG decides on the logger of adapters that are opened without one.
 * @throws DatError as `Registry.register`
 */
export function createRegistry(options: RegistryOptions = {}): Registry {
  return createPlainRegistry({ platform: PLATFORM, ...options });
}

/**
 * Reads a dat.conf into a registry.
 * @param path of the file; default: the file that DAT_OVERRIDE names, else `/etc/dat.conf`
 * @throws DatError DAT_INTERNAL_ERROR if a named file cannot be read
 */
export async function loadRegistry(path?: string): Promise<Registry> {
  const datConf = await readDatConf(path);
  const { path: file = '' } = datConf;
  const load = (libPath: string): Promise<unknown> => loadProvider(libPath, file);
  return createRegistry({ datConf, load, decorate: captureIfAsked });
}

let system: Promise<Registry> | undefined;

/**
 * The registry of this process, in which `openIa` looks up names. dat.conf is read on first use.
 */
export function systemRegistry(): Promise<Registry> {
  system ??= loadRegistry().catch((error: unknown) => {
    system = undefined;
    throw error;
  });
  return system;
}

/**
 * Opens an interface adapter (dat_ia_open, dat_ia_openv): of a configured provider, by a name that
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
  checkParameter('openIa', 'name', target, typeof target === 'string', 'text, where `from` is');
  const provider = await packageProvider(target as string, {
    ...(from !== undefined && { from }),
    ...(iaParams !== undefined && { iaParams }),
  });
  return createRegistry({ decorate: captureIfAsked }).openIa(provider, rest);
}

/** The registry for a target. A configured provider needs no dat.conf, not even a readable one. */
async function registryFor(target: unknown): Promise<Registry> {
  const isName =
    typeof target === 'string' || (typeof target === 'object' && !!target && 'name' in target);
  return isName ? systemRegistry() : createRegistry({ decorate: captureIfAsked });
}

// DAPL_PCAP: the capture file for all devices of this process. `%p` in it stands for the process,
// and for the worker thread if there is one: each needs a file of its own.

/** Adds the capture if the variable is set. */
function captureIfAsked(provider: ConfiguredProvider): ConfiguredProvider {
  const file = process.env['DAPL_PCAP'];
  if (file === undefined || file === '') return provider;
  const writer = isMainThread ? String(process.pid) : `${String(process.pid)}-${String(threadId)}`;
  return capture(provider, { file: file.replaceAll('%p', writer) });
}
