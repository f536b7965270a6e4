/** Imports a provider by its package's name, resolved from the importing module. */
import { createRequire } from 'node:module';
import { dirname, isAbsolute } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { checkParameter } from '../../core/errors/guards.js';
import { DatError } from '../../core/errors/index.js';
import type { ConfiguredProvider } from '../../core/spi/index.js';
import { StaticProvider } from '../../core/registry/static-provider.js';

/** The module to resolve a package from, and parameters for the provider. */
export interface PackageOptions {
  /**
   * `import.meta.url` of the calling module, or the path of its file. The name is then a package's
   * entry, resolved as an import of that module, and only so. The working directory does not
   * matter.
   */
  readonly from?: string;
  /** With `from`: the provider's parameters, like the seventh field of a line in dat.conf. */
  readonly iaParams?: string;
}

const OPERATION = 'openIa';
const API = { api: 'u', versionMajor: 2, versionMinor: 0, isThreadSafe: false } as const;

/**
 * @param name `@acme/dapl-provider`, or a path that starts with a dot, from the module's folder
 * @throws DatError DAT_INVALID_PARAMETER, also for `iaParams` that the provider refuses;
 * DAT_PROVIDER_NOT_FOUND if the package is not found, does not load, or exports no
 * `datProviderInit`
 */
export async function packageProvider(
  name: string,
  { from, iaParams = '' }: PackageOptions,
): Promise<ConfiguredProvider> {
  const file = fileOf(from);
  const isFile = file !== undefined;
  checkParameter(OPERATION, 'from', from, isFile, 'the URL of a module, or the path of a file');
  const isText = typeof iaParams === 'string';
  checkParameter(OPERATION, 'iaParams', iaParams, isText, 'text, as in dat.conf');
  const line = { ...API, iaName: name, libPath: name, iaParams, isDefault: true };
  const provider = { providerId: name, providerMajor: 0, providerMinor: 0, platformParams: '' };
  return new StaticProvider(
    { ...line, ...provider },
    (libPath) => import(pathToFileURL(resolved(libPath, file!)).href),
    (message, cause) =>
      new DatError('DAT_INVALID_PARAMETER', {
        subtype: 'DAT_INVALID_ARG2',
        operation: OPERATION,
        message,
        value: iaParams,
        cause,
      }),
  ).plugin();
}

function fileOf(from: unknown): string | undefined {
  if (typeof from !== 'string') return undefined;
  try {
    const file = from.startsWith('file:') ? fileURLToPath(from) : from;
    return isAbsolute(file) ? file : undefined;
  } catch {
    return undefined;
  }
}

/** @throws Error that names the place it was resolved from */
function resolved(name: string, file: string): string {
  try {
    return createRequire(file).resolve(name);
  } catch (cause) {
    const { code = 'not found' } = cause as NodeJS.ErrnoException;
    throw new Error(`no such entry for ${dirname(file)} (${code})`, { cause });
  }
}
