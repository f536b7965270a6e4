// The rules of structure hold on the tree, and each of them bites: a violation is planted for each.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  assumedNames,
  crowdedFolders,
  deadCitations,
  deepClasses,
  filesOfOneImporter,
  type Import,
  importsOf,
  oddHeads,
  oneImplementer,
  roomCycles,
  smallFiles,
} from './support/house-rules.js';

const root = join(import.meta.dirname, '../..');
const FLOORS = ['core', 'plugins', 'providers', 'samples'];
const MOST_FILES = 25;
/**
 * Figures that may only fall: lower one when it has fallen, and say in the commit why one rises.
 * Small files, files of one importer and interfaces of one class cost a reader a hop; a doc comment
 * that begins with "Of" or "What" is read twice.
 */
const AT_MOST = { smallFiles: 60, filesOfOneImporter: 310, oneImplementer: 23, oddHeads: 0 };
const SMALL_LINES = 20;

const paths = FLOORS.flatMap((floor) =>
  readdirSync(join(root, floor), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1)),
);
const sources = new Map(
  paths
    .filter((path) => path.endsWith('.ts'))
    .map((path) => [path, readFileSync(join(root, path), 'utf8')]),
);
const imports = importsOf(sources);
/** Where an interface may have other implementers: doubles of tests, classes of strangers. */
const others = ['bench', 'docs/api', 'test'].flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.(?:ts|md)$/.test(path))
    .map((path) => readFileSync(join(root, folder, path), 'utf8')),
);
/** Everything that may cite a document: also native code, tests and pages. */
const citing = new Map(
  [...FLOORS, 'bench', 'docs', 'test']
    .flatMap((floor) =>
      readdirSync(join(root, floor), { recursive: true, encoding: 'utf8' }).map(
        (path) => `${floor}/${path}`,
      ),
    )
    .filter((path) => /\.(?:ts|cc|h|md)$/.test(path))
    .map((path) => [path, readFileSync(join(root, path), 'utf8')]),
);
const planted = (files: Readonly<Record<string, string>>): Import[] =>
  importsOf(new Map(Object.entries(files)));

describe('house', () => {
  it('sees the tree', () => {
    assert.ok(sources.has('core/dat/ia/ia.ts'));
    assert.ok(imports.some(({ typeOnly }) => typeOnly) && imports.some((each) => !each.typeOnly));
  });

  it(`has ${MOST_FILES} files in a folder at most`, () => {
    assert.deepEqual(crowdedFolders(paths, MOST_FILES), []);
    const full = Array.from({ length: MOST_FILES + 1 }, (_, i) => `core/full/${i}.ts`);
    const room = ['core/full/room/1.ts', 'core/full/room/2.ts'];
    assert.deepEqual(crowdedFolders([...full, ...room], MOST_FILES), ['core/full: 26']);
    assert.deepEqual(crowdedFolders(full.slice(1), MOST_FILES), []);
  });

  it('has no circle of rooms at run time; types of one room may know those of another', () => {
    assert.deepEqual(roomCycles(imports), []);
    const files = {
      'core/a/one.ts': "import { two } from '../b/two.js';\nexport const one = two;",
      'core/b/two.ts': "export const two = 2;\nexport { three } from '../c/three.js';",
      'core/c/three.ts': "import '../a/four.js';\nexport const three = 3;",
      'core/a/four.ts': '',
    };
    assert.deepEqual(roomCycles(planted(files)), [['core/a', 'core/b', 'core/c']]);
    const types = { ...files, 'core/c/three.ts': "import type { One } from '../a/one.js';" };
    assert.deepEqual(roomCycles(planted(types)), []);
  });

  it('has no more of what costs a reader a hop, or is read twice, than it had', () => {
    const counts = {
      smallFiles: smallFiles(sources, SMALL_LINES).length,
      filesOfOneImporter: filesOfOneImporter(imports).length,
      oneImplementer: oneImplementer(sources, others).length,
      oddHeads: oddHeads(sources).length,
    };
    for (const [what, most] of Object.entries(AT_MOST)) {
      const count = counts[what as keyof typeof AT_MOST];
      assert.ok(count <= most, `${what}: ${count}, at most ${most}`);
    }
  });

  it('counts small files, files of one importer and odd heads', () => {
    const files = new Map([
      ['core/a.ts', `import './b.js';\n${'\n// line'.repeat(SMALL_LINES)}`],
      ['core/b.ts', '/** What it is. */\nexport {};\n\n/**\n * Of a send.\n */\n/** A noun. */'],
    ]);
    assert.deepEqual(smallFiles(files, SMALL_LINES), ['core/b.ts']);
    assert.deepEqual(filesOfOneImporter(importsOf(files)), ['core/b.ts']);
    assert.deepEqual(oddHeads(files), ['core/b.ts', 'core/b.ts']);
  });

  it('counts interfaces of one class', () => {
    const files = new Map([
      ['core/a.ts', 'export interface Port { send(): void }\nexport interface Options {}'],
      ['core/index.ts', "export * from './a.js';\nexport { type Port as Door } from './a.js';"],
      ['core/b.ts', "import type { Door } from './index.js';\nclass Own implements Door {}"],
    ]);
    assert.deepEqual(oneImplementer(files, []), ['core/a.ts: Port']);
    assert.deepEqual(oneImplementer(files, ['class Fake implements Port {}']), []);
    const more = (text: string): string[] =>
      oneImplementer(new Map([...files, ['core/c.ts', text]]), []);
    const use = "import type { Port } from './a.js';\n";
    assert.deepEqual(more(`${use}class Other implements Port {}`), []);
    assert.deepEqual(more(`${use}const port: Port = { send() {} };`), []);
    assert.deepEqual(more(`${use}function port(): Port { return { send() {} }; }`), []);
    assert.deepEqual(more('interface Port {}'), ['core/a.ts: Port']);
  });

  it('has no type that goes by the name of a class, and no merged declarations', () => {
    assert.deepEqual(assumedNames(sources), []);
    const files = new Map([
      ['core/a.ts', 'export interface Like {}\nexport class Ia {}'],
      ['core/b.ts', "import type { Like as Ia } from './a.js';\nexport type B = Ia;"],
      ['core/c.ts', "declare module './a.js' {\n  interface Like {}\n}"],
      ['core/d.ts', "import type { Ia } from './a.js';\nexport type D = Ia;"],
    ]);
    assert.deepEqual(assumedNames(files), ['core/b.ts', 'core/c.ts']);
  });

  it('cites no document that is not there', () => {
    assert.deepEqual(deadCitations(citing), []);
    const citation = `// See wire ${'facts'} 1.9.`;
    assert.deepEqual(deadCitations(new Map([['core/a.ts', citation]])), ['core/a.ts']);
  });

  it('has classes that go two deep, errors three', () => {
    assert.deepEqual(deepClasses(sources), []);
  });

  it('tells classes that go deeper, through whatever passes them on', () => {
    const deep = deepClasses(
      new Map([
        ['core/a.ts', 'export class A extends Map {}\nexport class AnyError extends Error {}'],
        ['core/index.ts', "export * from './a.js';\nexport { A as Base } from './a.js';"],
        ['core/b.ts', "import { Base } from './index.js';\nexport class B extends Base {}"],
        ['core/c.ts', "import { B as Other } from './b.js';\nclass C extends Other {}"],
        [
          'core/errors.ts',
          "import { AnyError } from './index.js';\nclass OneError extends AnyError {}\n" +
            'class TwoError extends OneError {}\nclass ThreeError extends TwoError {}',
        ],
      ]),
    );
    assert.deepEqual(deep, ['C → B → A', 'ThreeError → TwoError → OneError → AnyError']);
  });
});
