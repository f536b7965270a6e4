import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

const here = import.meta.dirname;
const page = readFileSync(join(here, '../../../../docs/spi.md'), 'utf8');

describe('docs/spi.md', () => {
  it('has a module that wraps, which runs', async () => {
    const [, code] = /```js\n(import [^]*?)```/.exec(page) ?? [];
    assert.ok(code);
    // Inside the package, where `dapl` means this one.
    const path = join(here, 'spi-example.mjs');
    writeFileSync(path, code);
    const { stdout } = await promisify(execFile)(process.execPath, [path], { timeout: 15_000 });
    assert.equal(stdout, 'an agent of class 7\n');
  });
});
