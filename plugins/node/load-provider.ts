/** Provider packages by the lib_path of a line of dat.conf. */
import { realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, isAbsolute, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

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
