import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { patience } from '../support/patience.js';
import { fileOf, hello } from '../support/printed-program.js';

const HELLO = 'hello over RDMA\n';

/** The first block of code below its heading in the README, as it is printed there. */
async function printed(): Promise<string> {
  const [, code] =
    /\n## Hello\n[^]*?```js\n([^]*?)```/.exec(await readFile('README.md', 'utf8')) ?? [];
  assert.ok(code);
  return code;
}

const output = (path: string): Promise<object> =>
  promisify(execFile)(process.execPath, [path], { timeout: patience(60_000) });

describe('hello', () => {
  it('says what it was sent, and ends by itself', async () => {
    assert.deepEqual(await output(hello()), { stdout: HELLO, stderr: '' });
  });

  it('stands in the README as it is', async () => {
    assert.equal(await printed(), await readFile('samples/hello/main.ts', 'utf8'));
  });

  it('runs as the README prints it: plain JavaScript for every supported Node', async () => {
    const path = fileOf(await printed(), 'readme-hello');
    assert.deepEqual(await output(path), { stdout: HELLO, stderr: '' });
  });
});
