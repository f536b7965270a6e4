import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { Program } from './program.js';

describe('hello', () => {
  it('says what it was sent, and ends by itself', async () => {
    const { code, stdout, stderr } = await new Program('hello').ended;
    assert.deepEqual(
      { code, stdout, stderr },
      { code: 0, stdout: 'hello over RDMA\n', stderr: '' },
    );
  });

  it('stands in the README as it is', async () => {
    const code = await readFile('samples/hello/main.ts', 'utf8');
    const readme = await readFile('README.md', 'utf8');
    assert.ok(readme.includes(`\`\`\`ts\n${code}\`\`\``));
  });
});
