// Prebuilds are of the sources that are there: what is older is built anew, or is there no more.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { leaveOut } from '../support/left-out.js';
import { ROOT } from './packed.js';

const PREBUILD = '.ci/prebuild.mjs';
const COMPILE = 'providers/softroce/native/compile.mjs';
const TARGET = `linux-${process.arch}`;

describe('prebuild.mjs', function () {
  const tree = mkdtempSync(join(tmpdir(), 'dapl-prebuilds-'));
  const output = join(tree, 'prebuilds', TARGET, 'tiny.so');
  const source = join(tree, 'providers/tiny/native/tiny.c');
  before(function () {
    const missing = ['c++', 'readelf'].filter(
      (name) => spawnSync(name, ['--version']).status !== 0,
    );
    if (missing.length > 0 || process.platform !== 'linux') {
      leaveOut(this, `no ${missing.join(', ')}`, 'apt-get install build-essential');
    }
    for (const folder of ['.ci', 'providers/softroce/native', 'providers/tiny/native']) {
      mkdirSync(join(tree, folder), { recursive: true });
    }
    for (const file of [PREBUILD, COMPILE]) copyFileSync(join(ROOT, file), join(tree, file));
    const plan = { output: 'tiny.so', platforms: ['linux'] };
    writeFileSync(join(tree, 'providers/tiny/native/native.json'), JSON.stringify(plan));
    write('of the first source');
  });
  after(() => rmSync(tree, { recursive: true }));

  function write(text: string): void {
    const made = '__attribute__((visibility("default"))) const char *made(void)';
    writeFileSync(source, `${made} { return "${text}"; }`);
  }

  function prebuild(env: NodeJS.ProcessEnv = process.env): { said: string; status: number | null } {
    const args = [join(tree, PREBUILD), TARGET];
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', env });
    return { said: stdout + stderr, status };
  }

  const holds = (text: string): boolean => readFileSync(output, 'latin1').includes(text);

  it('builds, and then says that what is there is up to date', () => {
    const first = prebuild();
    assert.deepEqual(first.status, 0, first.said);
    assert.match(first.said, /tiny\.so: \d+ KiB, needs glibc 2\.\d+/);
    assert.ok(holds('of the first source'));
    assert.deepEqual(prebuild(), { said: `prebuilds/${TARGET}: up to date\n`, status: 0 });
  });

  it('builds anew when a source has changed', () => {
    write('of the second one');
    assert.match(prebuild().said, /tiny\.so: \d+ KiB/);
    assert.ok(holds('of the second one') && !holds('of the first source'));
  });

  it('leaves none of other sources where there is no compiler, and says so', () => {
    write('of the third one');
    const { said, status } = prebuild({ PATH: '/nowhere' });
    assert.match(said, /no compiler g\+\+, not built/);
    assert.equal(status, 1);
    assert.ok(!existsSync(output));
  });
});
