import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Program } from './program.js';

const HELLO = 'hello over RDMA\n';

/** The first block of code of the README, as it is printed there. */
async function printed(): Promise<string> {
  const [, code] = /```js\n([^]*?)```/.exec(await readFile('README.md', 'utf8')) ?? [];
  assert.ok(code);
  return code;
}

describe('hello', () => {
  it('says what it was sent, and ends by itself', async () => {
    const { code, stdout, stderr } = await new Program('hello').ended;
    assert.deepEqual({ code, stdout, stderr }, { code: 0, stdout: HELLO, stderr: '' });
  });

  it('stands in the README as it is', async () => {
    assert.equal(await printed(), await readFile('samples/hello/main.ts', 'utf8'));
  });

  it('runs as the README prints it: plain JavaScript for every supported Node', async () => {
    // Inside the package, where `dapl` means this one.
    const path = join(import.meta.dirname, 'readme-hello.mjs');
    await writeFile(path, await printed());
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [path], {
      timeout: 15_000,
    });
    assert.deepEqual({ stdout, stderr }, { stdout: HELLO, stderr: '' });
  });
});
