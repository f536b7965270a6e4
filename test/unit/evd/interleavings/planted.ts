/** The classes under test, and copies of the compiled core with a bug planted in one file. */
import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { Cno, Evd } from '../../../../core/evd/index.js';
import { closeSteps } from '../../../../core/dat/ia/closing.js';
import type { Core } from './space.js';

export const real: Core = { Evd, Cno, closeSteps };

export interface PlantedBug {
  readonly name: string;
  /** File under core, without extension. */
  readonly file: string;
  /** What is replaced, and by what; each must be there. */
  readonly edits: readonly (readonly [from: string, to: string])[];
}

const dist = join(dirname(fileURLToPath(import.meta.url)), '../../../..');

/** Loads the classes of a copy; the copy is gone when this has returned. */
export async function plant({ file, edits }: PlantedBug): Promise<Core> {
  const root = mkdtempSync(join(dist, 'planted-'));
  try {
    cpSync(join(dist, 'core'), join(root, 'core'), { recursive: true });
    const path = join(root, 'core', `${file}.js`);
    let text = readFileSync(path, 'utf8');
    for (const [from, to] of edits) {
      assert.ok(text.includes(from), `${file}.js has no: ${from}`);
      text = text.replace(from, to);
    }
    writeFileSync(path, text);
    const load = async (module: string): Promise<unknown> =>
      import(pathToFileURL(join(root, 'core', module)).href);
    const evd = (await load('evd/index.js')) as Pick<Core, 'Evd' | 'Cno'>;
    const close = (await load('dat/ia/closing.js')) as Pick<Core, 'closeSteps'>;
    return { Evd: evd.Evd, Cno: evd.Cno, closeSteps: close.closeSteps };
  } finally {
    rmSync(root, { recursive: true });
  }
}
