// What `npm pack` takes: what the exports and the command lead to, and the sources and prebuilds of
// the addons. Without its scripts: they build, and what is there has been built.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');

const TARGET = `${process.platform}-${process.arch}`;
const PREBUILDS = `prebuilds/${TARGET}`;

function run(...args: readonly string[]): void {
  const { status, stderr } = spawnSync(process.execPath, args, { cwd: ROOT, encoding: 'utf8' });
  assert.equal(status, 0, stderr);
}

describe('the package', function () {
  this.timeout(300_000);
  let packed: ReadonlySet<string>;
  before(() => {
    if (!existsSync(join(ROOT, PREBUILDS))) run('prebuild.mjs', TARGET);
    const { status, stdout, stderr } = spawnSync(
      'npm',
      ['pack', '--dry-run', '--json', '--ignore-scripts'],
      { cwd: ROOT, encoding: 'utf8' },
    );
    assert.equal(status, 0, stderr);
    const [result] = JSON.parse(stdout) as [{ files: { path: string }[] }];
    packed = new Set(result.files.map(({ path }) => path));
  });

  it('holds what its exports and its command lead to', () => {
    const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
      exports: Record<string, string | { types: string; default: string }>;
      bin: Record<string, string>;
    };
    const targets = Object.values(manifest.exports).flatMap((entry) =>
      typeof entry === 'string' ? [entry] : [entry.types, entry.default],
    );
    const all = [...targets, ...Object.values(manifest.bin)];
    assert.deepEqual(
      all.filter((path) => !packed.has(path.replace(/^\.\//, ''))),
      [],
    );
  });

  for (const provider of ['softroce', 'verbs']) {
    it(`holds all sources of the addon of ${provider}, to build it where it is installed`, () => {
      const directory = `providers/${provider}/native`;
      const files = readdirSync(join(ROOT, directory)).map((name) => `${directory}/${name}`);
      assert.ok(files.length > 5);
      assert.deepEqual(
        files.filter((path) => !packed.has(path)),
        [],
      );
    });
  }

  it('holds the prebuilds', () => {
    const files = readdirSync(join(ROOT, PREBUILDS)).map((name) => `${PREBUILDS}/${name}`);
    assert.ok(files.includes(`${PREBUILDS}/verbs.node`), files.join());
    assert.deepEqual(
      files.filter((path) => !packed.has(path)),
      [],
    );
  });

  it('holds no test but the conformance suite, and no machine-made object', () => {
    const strangers = [...packed].filter((path) =>
      /^(test|dist\/test\/(?!compliance\/)|build|node_modules)\b/.test(path),
    );
    assert.deepEqual(strangers, []);
  });
});
