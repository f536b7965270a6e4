// The example of docs/conformance.md, run by mocha as a stranger would: on the packed package.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { install } from '../package/packed.js';
import { patience } from '../support/patience.js';

const run = promisify(execFile);
const root = join(import.meta.dirname, '../../..');

describe('docs/conformance.md: the example', () => {
  it('runs the suite from the packed package, and counts what does not apply', async function () {
    this.timeout(180_000);
    const text = readFileSync(join(root, 'docs/conformance.md'), 'utf8');
    const [, code] = /```js\n([^]*?)```/.exec(text) ?? [];
    assert.ok(code, 'the page has no example');
    const directory = mkdtempSync(join(tmpdir(), 'dapl-conformance-'));
    try {
      await install(directory, 'mocha');
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
