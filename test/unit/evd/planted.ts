/** Copies of the compiled core with a bug planted in one of its files. */
import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { Evd } from '../../../core/evd/index.js';

export interface PlantedBug {
  readonly name: string;
  /** File under core/evd, without extension. */
  readonly file: string;
  /** What is replaced, and by what; each must be there. */
  readonly edits: readonly (readonly [from: string, to: string])[];
}

const dist = join(dirname(fileURLToPath(import.meta.url)), '../../..');

/** Loads the Evd class of a copy; the copy is gone when this has returned. */
export async function plant({ file, edits }: PlantedBug): Promise<typeof Evd> {
  const root = mkdtempSync(join(dist, 'planted-'));
  try {
    cpSync(join(dist, 'core'), join(root, 'core'), { recursive: true });
    const path = join(root, 'core/evd', `${file}.js`);
    let text = readFileSync(path, 'utf8');
    for (const [from, to] of edits) {
      assert.ok(text.includes(from), `${file}.js has no: ${from}`);
      text = text.replace(from, to);
    }
    writeFileSync(path, text);
    const url = pathToFileURL(join(root, 'core/evd/index.js')).href;
    return ((await import(url)) as { Evd: typeof Evd }).Evd;
  } finally {
    rmSync(root, { recursive: true });
  }
}
