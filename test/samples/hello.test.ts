import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { hello } from '../support/printed-program.js';

describe('hello', () => {
  it('says what it was sent, and ends by itself', async () => {
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [hello()]);
    assert.deepEqual({ stdout, stderr }, { stdout: 'hello over RDMA\n', stderr: '' });
  });

  it('stands in the README as it is', async () => {
    const code = await readFile('samples/hello/main.ts', 'utf8');
    const readme = await readFile('README.md', 'utf8');
    assert.ok(readme.includes(`\`\`\`ts\n${code}\`\`\``));
  });
});
