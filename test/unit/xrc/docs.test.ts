import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { TARGET_ATTRIBUTES } from '../../../plugins/xrc/index.js';
import { runExample } from '../../support/printed-program.js';

const page = readFileSync(join(import.meta.dirname, '../../../../docs/xrc.md'), 'utf8');

describe('docs/xrc.md', () => {
  it('has an example that runs', async () => {
    const { stdout, stderr } = await runExample('xrc');
    assert.deepEqual([stdout, stderr], ['', '']);
  });

  it('has the table of attributes as the module has it', () => {
    const rows = page.split('\n').flatMap((line) => {
      const cells = line.split('|').map((cell) => cell.trim());
      return /^`\w+`$/.test(cells[1] ?? '') && cells.length === 6 ? [cells.slice(1, 5)] : [];
    });
    const expected = Object.entries(TARGET_ATTRIBUTES).map(
      ([name, { use, transition, mask, fallback }]) => [
        `\`${name}\``,
        use === 'default' ? `default ${fallback}` : use,
        transition,
        mask,
      ],
    );
    assert.deepEqual(rows, expected);
  });
});
