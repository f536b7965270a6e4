// The example of docs/conformance.md, run by mocha as a stranger would: on the packed package.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { patience } from '../support/patience.js';

const run = promisify(execFile);
const root = join(import.meta.dirname, '../../..');

/** A directory with the package as npm would install it, and the dependencies of this checkout. */
async function installed(): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'dapl-packed-'));
  const pack = ['pack', '--ignore-scripts', '--silent', '--pack-destination', directory];
  await run('npm', pack, { cwd: root, maxBuffer: 1 << 24 });
  const tarball = readdirSync(directory).find((name) => name.endsWith('.tgz'));
  assert.ok(tarball, 'npm pack made no tarball');
  const target = join(directory, 'node_modules/dapl');
  mkdirSync(target, { recursive: true });
  const tar = ['-xzf', join(directory, tarball), '-C', target, '--strip-components=1'];
  await run('tar', tar);
  const manifest = JSON.parse(readFileSync(join(target, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>;
  };
  for (const name of [...Object.keys(manifest.dependencies), 'mocha']) {
    symlinkSync(join(root, 'node_modules', name), join(directory, 'node_modules', name));
  }
  return directory;
}

describe('docs/conformance.md: the example', () => {
  it('runs the suite from the packed package, and counts what does not apply', async function () {
    this.timeout(180_000);
    const text = readFileSync(join(root, 'docs/conformance.md'), 'utf8');
    const [, code] = /```js\n([^]*?)```/.exec(text) ?? [];
    assert.ok(code, 'the page has no example');
    const directory = await installed();
    try {
      writeFileSync(join(directory, 'conformance.mjs'), code);
      const mocha = join(directory, 'node_modules/mocha/bin/mocha.js');
      const args = ['--no-config', '--timeout', String(patience(60_000)), 'conformance.mjs'];
      const { stdout } = await run(process.execPath, [mocha, ...args], {
        cwd: directory,
        maxBuffer: 1 << 24,
      });
      const passing = Number(/(\d+) passing/.exec(stdout)?.[1]);
      const others = Number(
        /my provider behaves as DAT says: (\d+) not applicable/.exec(stdout)?.[1],
      );
      assert.ok(passing > 300, `${passing} behaviours ran`);
      assert.ok(others > 50, `${others} are not applicable`);
      assert.doesNotMatch(stdout, /failing/);
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
});
