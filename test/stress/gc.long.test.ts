// The garbage collector as an adversary: it runs all the time, and moves what it can.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { patience } from '../support/patience.js';

const root = join(import.meta.dirname, '../../..');
const mocha = createRequire(import.meta.url).resolve('mocha/bin/mocha.js');

/** Flags of V8, and those of them that this Node takes: they come and go with its versions. */
const WANTED = ['--gc-interval=20000', '--stress-compaction', '--stress-marking=50'];
const taken = WANTED.filter(
  (flag) => spawnSync(process.execPath, [flag, '-e', '0'], { stdio: 'ignore' }).status === 0,
);

/** Tests of core whose objects live as long as a post, an event, a region. */
const TESTS = [
  ...['dat/over-mock', 'dat/posting', 'dat/rmr', 'dat/srq'],
  ...['evd/evd-pull', 'evd/evd-upcall'],
].map((name) => join(root, 'dist/test/unit', `${name}.test.js`));

function run(...args: readonly string[]): string {
  const flags = ['--expose-gc', ...taken];
  const child = spawnSync(process.execPath, [...flags, ...args], { encoding: 'utf8', cwd: root });
  assert.equal(child.status, 0, `${child.stdout}\n${child.stderr}`);
  return child.stdout;
}

describe('garbage collection', () => {
  it('under stress is something that this Node can do', () => {
    assert.ok(taken.length > 0, `none of ${WANTED.join(', ')}`);
  });

  it('at any time changes nothing for posts, events and regions', () => {
    const out = run(mocha, '--no-config', '--timeout', String(patience(120_000)), ...TESTS);
    assert.match(out, /^ {2}\d{2,} passing/m);
    assert.doesNotMatch(out, /^ {2}\d+ pending/m);
  });

  for (const port of ['native', 'dgram']) {
    it(`takes no memory of what is posted or granted, and all after the close: ${port}`, () => {
      const out = run(join(import.meta.dirname, 'gc-program.js'), port);
      const [, made, left] = /^(\d+) made, (\d+) left$/m.exec(out) ?? [];
      assert.ok(Number(made) > 40);
      assert.ok(Number(left) <= 4, out);
    });
  }
});
