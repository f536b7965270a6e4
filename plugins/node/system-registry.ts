/** The registry of this machine: dat.conf, and provider packages that are imported by name. */
import {
  createRegistry,
  type Ia,
  type OpenIaOptions,
  type OpenTarget,
  type Registry,
} from '../../core/index.js';
import { checkParameter } from '../../core/errors/guards.js';
import { readDatConf } from './dat-conf-file.js';
import { captureIfAsked } from './capture.js';
import { loadProvider } from './load-provider.js';
import { type PackageOptions, packageProvider } from './package-provider.js';

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
