import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { CNO_STATES, UpcallPolicy } from '../../../core/index.js';

const here = import.meta.dirname;
const page = readFileSync(join(here, '../../../../docs/evd.md'), 'utf8');

/** First cells of the table that begins with this head. */
function firstCells(head: string): string[] {
  const at = page.indexOf(`| ${head} `);
  assert.ok(at >= 0, `no table begins with ${head}`);
  const rows = page.slice(at).split('\n\n')[0]?.split('\n').slice(2) ?? [];
  return rows.map((row) => row.split('|')[1]?.trim().split(' ')[0] ?? '');
}

describe('docs/evd.md', () => {
  it('has an example that runs', async () => {
    const [, code] = /```ts\n(import [^]*?)```/.exec(page) ?? [];
    assert.ok(code);
    // Inside the package, where `dapl` means this one. The example has no types, so it is also JS.
    const path = join(here, 'evd-example.mjs');
    writeFileSync(path, code);
    const { stdout } = await promisify(execFile)(process.execPath, [path], { timeout: 15_000 });
    assert.equal(stdout, 'true\nfirst\nsecond\n');
  });

  it('has every policy and every state of a CNO', () => {
    assert.deepEqual(firstCells('policy'), [...new Set(Object.values(UpcallPolicy))]);
    assert.deepEqual(firstCells('state'), Object.keys(CNO_STATES));
  });
});
