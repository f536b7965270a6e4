/**
 * Locates dat.conf (dat.conf(5)): the file that DAT_OVERRIDE names, else the first that exists of
 * the usual places.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatError } from '../../core/errors/index.js';
import { type DatConf, parseDatConf } from '../../core/registry/index.js';

export interface DatConfFile extends DatConf {
  /** Absent if no file was found. */
  readonly path?: string;
  /** Places that were searched. */
  readonly searched: readonly string[];
}

/** Places to search in order, if DAT_OVERRIDE names none. */
export function defaultPaths(
  platform: NodeJS.Platform = process.platform,
  env: NodeJS.ProcessEnv = process.env,
): readonly string[] {
  if (platform === 'win32') return [join(env['SystemDrive'] ?? 'C:', 'DAT', 'dat.conf')];
  return ['/etc/dat.conf', '/usr/local/etc/dat.conf', '/etc/rdma/dat.conf'];
}

/**
 * Reads the machine's dat.conf. A missing file is no error, unless it was named.
 * @param path of a file that must exist; default DAT_OVERRIDE
 * @throws DatError DAT_INTERNAL_ERROR if the file cannot be read, or was named and does not exist
 */
export async function readDatConf(
  path: string | undefined = process.env['DAT_OVERRIDE'] || undefined,
): Promise<DatConfFile> {
  const searched = path === undefined ? defaultPaths() : [path];
  for (const candidate of searched) {
    const text = await readIfThere(candidate, path !== undefined);
    if (text !== undefined) {
      return { ...parseDatConf(text, candidate), path: candidate, searched };
    }
  }
  return { entries: [], errors: [], searched };
}

async function readIfThere(path: string, required: boolean): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (!required && (code === 'ENOENT' || code === 'ENOTDIR')) return undefined;
    throw new DatError('DAT_INTERNAL_ERROR', {
      operation: 'readDatConf',
      message: `the static registry cannot be read: ${message}`,
      hint: required ? 'correct DAT_OVERRIDE, or the path given' : 'set DAT_OVERRIDE to another',
      value: path,
      cause: error,
    });
  }
}
