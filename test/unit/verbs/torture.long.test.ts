// Memory and threads over the fakes: what the garbage collector and the end of a worker must not
// break. Each case is a process of its own, so that a crash is a failure of the case.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { join } from 'node:path';

const PROGRAM = join(import.meta.dirname, '../../fake-verbs/torture-program.js');

/** Output of a case; fails on a signal, an error, or when the process does not end by itself. */
function run(scene: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ['--expose-gc', PROGRAM, scene], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, FAKE_VERBS_MODE: 'thread' },
    });
    let output = '';
    child.stdout.on('data', (chunk) => (output += String(chunk)));
    child.stderr.on('data', (chunk) => (output += String(chunk)));
    child.on('error', reject);
    child.on('exit', (code, signal) => {
      if (code === 0) resolve(output);
      else reject(new Error(`${scene}: ${signal ?? `exit ${code}`}\n${output}`));
    });
  });
}

describe('verbs: memory and threads', function () {
  this.timeout(240_000);

  it('buffers that nobody refers to stay while they are registered and written into', async () => {
    assert.match(await run('dropped'), /as expected/);
  });

  it('the collector runs while the device writes: every byte is where it belongs', async () => {
    assert.match(await run('collected'), /as expected/);
  });

  it('adapters that are never closed end with the process', async () => {
    assert.match(await run('forgotten'), /as expected/);
  });

  it('a worker that is terminated in mid-transfer leaves nothing behind', async () => {
    assert.match(await run('workers'), /as expected/);
  });
});
