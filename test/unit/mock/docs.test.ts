import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

const here = import.meta.dirname;
const page = join(here, '../../../../docs/mock.md');

describe('docs/mock.md', () => {
  it('has an example that runs', async function () {
    this.timeout(20_000);
    const [, code] = /```js\n([^]*?)```/.exec(readFileSync(page, 'utf8')) ?? [];
    assert.ok(code);
    // Inside the package, where `dapl` means this one.
    const path = join(here, 'mock-example.mjs');
    writeFileSync(path, code);
    const { stdout } = await promisify(execFile)(process.execPath, [path], { timeout: 15_000 });
    assert.match(stdout, /^\d+ packets were lost on purpose\n$/);
  });
});
