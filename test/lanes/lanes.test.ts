// The lanes leave no test out, and the program that runs them says what failed, and why.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { affectedTests, importers } from './affected.js';
import {
  compiled,
  filesBelow,
  isQuickRun,
  LANE_VARIABLE,
  LANES,
  laneOf,
  ROOT,
  roomsOf,
  testFiles,
} from './lanes.js';

/** Outputs and packages, which hold no sources of ours. */
const NO_SOURCES = new Set(['node_modules', 'dist', 'build', 'coverage', '.git']);

/** What `npm test` must try, whatever else is long. */
const ALWAYS_QUICK = [
  'test/compliance/softroce.test.ts',
  'test/compliance/verbs.test.ts',
  'test/compliance/mock.test.ts',
  'test/samples/transfer-files.test.ts',
  'test/samples/hello.test.ts',
];

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

/** Every file of tests in the repository, wherever it is. */
function everyTest(): string[] {
  const tops = readdirSync(ROOT, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !NO_SOURCES.has(entry.name))
    .map((entry) => entry.name);
  return tops
    .flatMap(filesBelow)
    .filter((path) => /\.test\.[cm]?[jt]s$/.test(path) && !path.includes('node_modules/'))
    .sort();
}

describe('lanes of tests', () => {
  it('have each test of the repository, once', () => {
    const files = testFiles();
    assert.ok(files.includes('test/lanes/lanes.test.ts'));
    assert.deepEqual(files, everyTest());
    const inLanes = LANES.flatMap((lane) => files.filter((file) => laneOf(file) === lane));
    assert.deepEqual(inLanes.sort(), files);
    const inRooms = roomsOf(files).flatMap((room) => room.files);
    assert.deepEqual([...inRooms].sort(), files);
  });

  it('run all in CI, and the quick one in npm test', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
    assert.match(scripts['test'] ?? '', / dist\/test\/lanes\/main\.js quick$/);
    assert.ok(scripts['test:all']?.endsWith(` dist/test/lanes/main.js ${LANES.join(' ')}`));
    assert.match(read('.ci/run'), /^suite .* npm run test:all -- --forbid-only --forbid-pending$/m);
    assert.match(read('.github/workflows/ci.yml'), /^ +- run: npm run test:all$/m);
  });

  it('leave long cases out of npm test only, and none of them is all that a file has', () => {
    assert.equal(isQuickRun(['quick'], []), true);
    assert.equal(isQuickRun(LANES, []), false);
    assert.equal(isQuickRun(['quick'], ['test/slots']), false);
    const mocha = createRequire(import.meta.url).resolve('mocha/lib/cli/cli.js');
    const count = (files: readonly string[], quickPid: number): Map<string, number> => {
      const args = [mocha, '--dry-run', '--reporter', 'json', ...files.map(compiled)];
      const env = { ...process.env, [LANE_VARIABLE]: String(quickPid) };
      const { stdout } = spawnSync(process.execPath, args, { encoding: 'utf8', cwd: ROOT, env });
      const { tests } = JSON.parse(stdout.slice(stdout.indexOf('{\n'))) as {
        tests: readonly { file: string }[];
      };
      const counts = new Map(files.map((file) => [compiled(file), 0]));
      for (const { file } of tests) counts.set(file, counts.get(file)! + 1);
      return counts;
    };
    const files = testFiles().filter((file) => /\blongIt\b|\bhasLongCases\b/.test(read(file)));
    assert.deepEqual(new Set(files.map(laneOf)), new Set(['quick']));
    const quick = count(files, process.pid);
    assert.deepEqual(
      files.filter((file) => quick.get(compiled(file)) === 0),
      [],
    );
    const table = 'test/xrc-host/starting.test.ts';
    assert.ok(quick.get(compiled(table))! > 0);
    // As in a program that a test starts: its parent is another one.
    const all = count([table], process.ppid);
    assert.ok(quick.get(compiled(table))! < all.get(compiled(table))!);
  }).timeout(60_000);

  it('try each room, each provider, each ULP and the main job in npm test', () => {
    const quick = testFiles().filter((file) => laneOf(file) === 'quick');
    assert.deepEqual(
      ALWAYS_QUICK.filter((file) => !quick.includes(file)),
      [],
    );
    const folders = ['test/unit', 'test/unit/samples'].flatMap((above) =>
      readdirSync(join(ROOT, above), { withFileTypes: true })
        .filter((entry) => entry.isDirectory())
        .map((entry) => `${above}/${entry.name}/`),
    );
    const tried = (folder: string): boolean => quick.some((file) => file.startsWith(folder));
    assert.deepEqual(
      folders.filter((folder) => !tried(folder)),
      [],
    );
  });
});

describe('the program that runs the lanes', function () {
  this.timeout(120_000);
  const directory = mkdtempSync(join(tmpdir(), 'dapl-lanes-'));
  after(() => rmSync(directory, { recursive: true }));

  function run(...args: readonly string[]): { readonly lines: string[]; readonly code: unknown } {
    const main = join(import.meta.dirname, 'main.js');
    // Its reporter finds the program that started it, and that is not this one.
    const { stdout, status } = spawnSync(process.execPath, [main, ...args], { encoding: 'utf8' });
    return { lines: stdout.trimEnd().split('\n'), code: status };
  }

  /** Runs a small file of tests after this hook, which mocha loads. */
  function runAfter(hook: string): { readonly lines: string[]; readonly code: unknown } {
    const planted = join(directory, 'planted.cjs');
    writeFileSync(planted, `exports.mochaHooks = { beforeAll() { ${hook} } };\n`);
    return run('quick', 'test/unit/errors/codes.test.ts', '--require', planted);
  }

  it('prints a line for each file and ends with the counts', () => {
    const { lines, code } = run('test/unit/errors/codes.test.ts');
    const [, passed] =
      /^\[1\/1\] test\/unit\/errors\/codes\.test\.ts: (\d+) passed/.exec(lines[1] ?? '') ?? [];
    assert.ok(Number(passed) > 0, lines.join('\n'));
    assert.equal(lines.at(-1), `${passed} passed, 0 failed`);
    assert.equal(code, 0);
  });

  it('lists what failed as mocha does', () => {
    const { lines, code } = runAfter("throw new Error('planted');");
    assert.ok(lines.includes('  1 failing'), lines.join('\n'));
    assert.ok(lines.some((line) => line.includes('Error: planted')));
    assert.equal(lines.at(-1), '0 passed, 1 failed');
    assert.equal(code, 1);
  });

  it('counts a process that ends before its tests do as a failure', () => {
    const { lines, code } = runAfter('process.exit(0);');
    assert.ok(
      lines.some((line) => line.includes('exited with code 0')),
      lines.join('\n'),
    );
    assert.equal(lines.at(-1), '0 passed, 1 failed');
    assert.equal(code, 1);
  });

  it('fails when no test was run', () => {
    const { lines, code } = run('test/unit/errors/codes.test.ts', '-g', 'no test has this name');
    assert.equal(lines.at(-1), '0 passed, 0 failed');
    assert.equal(code, 1);
  });
});

describe('the tests that npm run watch chooses', () => {
  const modules = new Map([
    ['core/a.js', ''],
    ['core/b.js', "export { a } from './a.js';"],
    ['test/far.test.js', "import { b } from 'dapl/b';"],
    ['test/near.test.js', "import { a } from '../core/a.js';"],
    ['test/other.test.js', "import 'node:fs';\nawait import('../core/c.js');"],
  ]);
  const importersOf = importers(modules, new Map([['dapl/b', 'core/b.js']]));

  it('import what changed, the closest first', () => {
    assert.deepEqual(affectedTests(['core/a.js'], importersOf), [
      'test/near.test.js',
      'test/far.test.js',
    ]);
  });

  it('are the changed tests themselves, and none that has nothing to do with it', () => {
    assert.deepEqual(affectedTests(['test/other.test.js'], importersOf), ['test/other.test.js']);
    assert.deepEqual(affectedTests(['core/b.js'], importersOf), ['test/far.test.js']);
  });
});
