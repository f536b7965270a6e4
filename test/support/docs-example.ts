/** The example of a page of docs, as a program of its own. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

const here = import.meta.dirname;

/** Runs the first `js` block of a page and returns what it prints. */
export async function runExample(page: string): Promise<string> {
  const text = readFileSync(join(here, '../../../docs', `${page}.md`), 'utf8');
  const [, code] = /```js\n([^]*?)```/.exec(text) ?? [];
  assert.ok(code, `docs/${page}.md has no example`);
  // Inside the package, where `dapl` means this one.
  const path = join(here, `${page}-example.mjs`);
  writeFileSync(path, code);
  const { stdout } = await promisify(execFile)(process.execPath, [path], { timeout: 15_000 });
  return stdout;
}
