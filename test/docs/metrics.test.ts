// docs/metrics.md: its table is that of the plugin.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { METRICS } from '../../plugins/metrics/table.js';

describe('docs/metrics.md', () => {
  it('has one row for each metric, as the plugin describes it', () => {
    const text = readFileSync(join(import.meta.dirname, '../../../docs/metrics.md'), 'utf8');
    const rows = text.split('\n').filter((line) => line.startsWith('| `'));
    const expected = Object.values(METRICS).map(({ name, labels, help }) => {
      const codes = labels.map((label) => `\`${label}\``).join(', ');
      return `| \`${name}\` | ${codes} | ${help} |`;
    });
    assert.deepEqual(rows, expected);
  });
});
