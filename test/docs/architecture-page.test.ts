// docs/architecture.md: every folder has its row, and no row speaks of a folder that is gone.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '../../..');
const FLOORS = ['core', 'plugins', 'providers', 'samples', 'test', 'bench'];
/** Holds libraries, each with a row of its own. */
const ULPS = 'samples/ulp';
const page = readFileSync(join(root, 'docs/architecture.md'), 'utf8');

/** Folders right below `path` that hold something: git leaves empty ones behind. */
function foldersIn(path: string): string[] {
  return readdirSync(join(root, path), { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.'))
    .map(({ name }) => `${path}/${name}`)
    .filter((folder) => readdirSync(join(root, folder)).length > 0);
}

/** The two cells of each row below a heading. */
function rowsBelow(heading: string): [names: string, text: string][] {
  const [, rest = ''] = page.split(`\n## ${heading}\n`);
  const [section = ''] = rest.split('\n## ');
  const rows = section.split('\n').filter((line) => line.startsWith('| `'));
  return rows.map((row) => {
    const [, names = '', text = ''] = row.split('|').map((cell) => cell.trim());
    return [names, text];
  });
}

/** Names in `code`, comma between them. */
function namesIn(cell: string): string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);
}

describe('docs/architecture.md', () => {
  it('has one row for each folder of two levels, which says its job', () => {
    const rows = rowsBelow('Every folder');
    const named = rows.flatMap(([names]) => namesIn(names));
    const folders = [...FLOORS, ULPS].flatMap(foldersIn).filter((folder) => folder !== ULPS);
    assert.deepEqual(named.sort(), folders.sort());
    const silent = rows.filter(([, job]) => job.length < 10);
    assert.deepEqual(silent, []);
  });

  it('has every room of core/dat, and names those of core/evd', () => {
    const rooms = rowsBelow('Rooms of core').flatMap(([names]) => namesIn(names));
    assert.deepEqual(rooms.sort(), foldersIn('core/dat').sort());
    const missing = foldersIn('core/evd').filter((room) => !page.includes(`\`${room}\``));
    assert.deepEqual(missing, []);
  });

  it('names the rooms of the modules and providers', () => {
    for (const [names, rooms] of rowsBelow('Rooms of the modules and providers')) {
      const [folder = ''] = namesIn(names);
      const there = foldersIn(folder).map((room) => room.slice(folder.length + 1));
      const named = new Set(namesIn(rooms));
      const missing = there.filter((room) => room !== 'native' && !named.has(room));
      assert.deepEqual(missing, [], folder);
    }
  });
});
