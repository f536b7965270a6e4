// docs/easy.md: its program runs as it stands, and its table of options is that of the calls.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import ts from 'typescript';
import { patience } from '../../support/patience.js';
import { fileOf, runExample } from '../../support/printed-program.js';

const page = readFileSync(join(import.meta.dirname, '../../../../docs/easy.md'), 'utf8');

describe('docs/easy.md', () => {
  it('has a program in TypeScript, with `await using`, that runs', async () => {
    const [, code = ''] = /```ts\n([^]*?)```/.exec(page) ?? [];
    assert.match(code, /await using/);
    const { outputText } = ts.transpileModule(code, {
      compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext },
    });
    const path = fileOf(outputText, 'easy-example');
    const timeout = patience(60_000);
    const done = await promisify(execFile)(process.execPath, [path], { timeout });
    assert.deepEqual(done, { stdout: 'RDMA\n', stderr: '' });
  });

  it('has a server that sends to all, and clients that come back', async () => {
    const { stdout, stderr } = await runExample('easy', 'js', 2);
    assert.deepEqual([stdout, stderr], ['first, second\n'.repeat(3), '']);
  });

  it('has requests and replies', async () => {
    const stdout = "[ 'RDMA', 'RoCE' ]\nRangeError nothing to turn around\n";
    assert.deepEqual(await runExample('easy'), { stdout, stderr: '' });
  });

  it('has datagrams that are answered', async () => {
    assert.deepEqual(await runExample('easy', 'js', 1), { stdout: 'yes\n', stderr: '' });
  });
});
