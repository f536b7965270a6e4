// docs/decorators.md has every rule of the guard and every metric, as the code has them.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { METRICS } from 'dapl/plugins/metrics';
import { SDK_VERSION } from 'dapl/spi';
import { BREACHES } from 'dapl/spi/decorators';

const page = (name: string): string =>
  readFileSync(join(import.meta.dirname, '../../../docs', name), 'utf8');

/** Cells of the rows whose first cell is code that begins so. */
function rows(text: string, prefix: string): string[][] {
  return text
    .split('\n')
    .filter((line) => line.startsWith(`| \`${prefix}`))
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim().replaceAll('`', '')),
    );
}

describe('docs/decorators.md', () => {
  const text = page('decorators.md');

  it('has each rule of the guard, in its words', () => {
    const [, part = ''] = text.split('## strict\n');
    const section = part.split('\n## ')[0] ?? '';
    assert.deepEqual(
      rows(section, ''),
      Object.entries(BREACHES).map(([rule, demand]) => [rule, demand]),
    );
  });

  it('has each metric, its labels and its help', () => {
    const wanted = Object.values(METRICS).map(({ name, labels, help }) => [
      name,
      labels.join(', '),
      help,
    ]);
    assert.deepEqual(rows(text, 'dapl_'), wanted);
  });
});

const SDK_ENTRIES = ['spi', 'spi-decorators', 'provider-kit', 'testing'];
/** The version that has a row for all exports of these entries, and their hash. */
const LOOKED_AT = ['2.0.0', '4d737dbb46c90d06'];

describe('the changelog of the SDK in docs/versions.md', () => {
  it('begins with the present version', () => {
    const [, part = ''] = page('versions.md').split('## The SDK\n');
    const [newest] = rows(part, '');
    assert.equal(newest?.[0], SDK_VERSION);
  });

  it('was looked at when the exports of the SDK changed last', () => {
    const members = SDK_ENTRIES.flatMap((entry) =>
      page(`api/${entry}.api.md`)
        .split('\n')
        .filter((line) => !/^\s*(\/\/|\/\*|\*)/.test(line)),
    );
    const hash = createHash('sha256').update(members.join('\n')).digest('hex').slice(0, 16);
    const advice =
      'the SDK exports something else: raise SDK_VERSION by the rule of docs/versions.md, ' +
      'or add to its row if it has not been released, then write the new hash here';
    assert.deepEqual([SDK_VERSION, hash], LOOKED_AT, advice);
  });
});
