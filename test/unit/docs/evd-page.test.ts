import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CNO_STATES } from '../../../core/evd/cno/states.js';
import { UpcallPolicy } from '../../../core/index.js';
import { runExample } from '../../support/printed-program.js';

const page = readFileSync(join(import.meta.dirname, '../../../../docs/evd.md'), 'utf8');

/** First cells of the table that begins with this head. */
function firstCells(head: string): string[] {
  const at = page.indexOf(`| ${head} `);
  assert.ok(at >= 0, `no table begins with ${head}`);
  const rows = page.slice(at).split('\n\n')[0]?.split('\n').slice(2) ?? [];
  return rows.map((row) => row.split('|')[1]?.trim().split(' ')[0] ?? '');
}

describe('docs/rx.md', () => {
  it('has an example that runs', async () => {
    const { stdout } = await runExample('rx', 'js');
    assert.equal(stdout, 'in operators\n');
  });
});

describe('docs/evd.md', () => {
  it('has an example that runs', async () => {
    // It has no types, so it is also JavaScript.
    const { stdout } = await runExample('evd', 'ts');
    assert.equal(stdout, 'true\nfirst\nsecond\n');
  });

  it('has every policy and every state of a CNO', () => {
    assert.deepEqual(firstCells('policy'), [...new Set(Object.values(UpcallPolicy))]);
    assert.deepEqual(firstCells('state'), Object.keys(CNO_STATES));
  });
});
