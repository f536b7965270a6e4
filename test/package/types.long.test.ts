// What the declarations of the package show: members that are `@internal` are left out of them, and
// with those the classes that no entry exports.

import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { entriesWithTypes, install } from './packed.js';

/** Bases of exported classes, which are never opened by themselves. */
const BASES = ['Handle'];

const CLASS = /^(?:export )?declare (?:abstract )?class (\w+)/gm;
const EXPORTS = /^export (?:type )?\{([^}]*)\}/gm;

const namesBy = (pattern: RegExp, text: string): string[] =>
  [...text.matchAll(pattern)].map(([, found = '']) => found);

/** Classes of the files that no entry exports under its name or another. */
function hiddenClasses(files: ReadonlyMap<string, string>, entries: readonly string[]): string[] {
  const exported = entries
    .flatMap((entry) => namesBy(EXPORTS, files.get(entry) ?? ''))
    .flatMap((list) => list.split(','))
    .flatMap((each) =>
      each
        .trim()
        .replace(/^type /, '')
        .split(' as '),
    );
  const shown = [...files].flatMap(([path, text]) =>
    namesBy(CLASS, text).map((name) => `${path}: ${name}`),
  );
  return shown.filter((each) => !exported.includes(each.slice(each.indexOf(': ') + 2)));
}

describe('the types of the package', function () {
  this.timeout(300_000);
  const project = mkdtempSync(join(tmpdir(), 'dapl-types-'));
  const files = new Map<string, string>();
  const entries = entriesWithTypes().map(([, path]) => path.replace('./dist/', ''));
  before(async () => {
    await install(project);
    const dist = join(project, 'node_modules/dapl/dist');
    const names = readdirSync(dist, { recursive: true, encoding: 'utf8' });
    for (const name of names.filter((each) => each.endsWith('.d.ts'))) {
      files.set(name, readFileSync(join(dist, name), 'utf8'));
    }
  });
  after(() => {
    rmSync(project, { recursive: true });
  });

  it('show no class that no entry exports', () => {
    assert.ok(files.size > entries.length);
    const hidden = hiddenClasses(files, entries);
    assert.deepEqual(
      hidden.filter((each) => !BASES.some((base) => each.endsWith(`: ${base}`))),
      [],
    );
  });

  it('would be found out if they did', () => {
    const chunk = 'declare class Open {}\ndeclare abstract class Hidden {}\nexport { Open as O }';
    const planted = new Map([
      ['chunk.d.ts', chunk],
      ['entry.d.ts', "export { O as Open } from './chunk.js';\nexport type { T } from './t.js';"],
    ]);
    assert.deepEqual(hiddenClasses(planted, ['entry.d.ts']), ['chunk.d.ts: Hidden']);
  });

  it('have no member that is @internal', () => {
    const marked = [...files].filter(([, text]) => text.includes('@internal'));
    assert.deepEqual(
      marked.map(([path]) => path),
      [],
    );
  });
});
