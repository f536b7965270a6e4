import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { TARGET_ATTRIBUTES } from '../../../plugins/xrc/index.js';

const here = import.meta.dirname;
const page = readFileSync(join(here, '../../../../docs/xrc.md'), 'utf8');

describe('docs/xrc.md', () => {
  it('has an example that runs', async () => {
    const [, code] = /```js\n([^]*?)```/.exec(page) ?? [];
    assert.ok(code);
    // Inside the package, where `dapl` means this one.
    const path = join(here, 'xrc-example.mjs');
    writeFileSync(path, code);
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [path], {
      timeout: 15_000,
    });
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
