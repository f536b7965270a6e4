/** Two processes that share an array, and a third that writes it over RDMA. */
import assert from 'node:assert/strict';
import { loopback } from '../support/loopback.js';
import { Program, runSample } from './program.js';

const [SERVES, WATCHES, WRITES] = [loopback(0, 81), loopback(0, 82), loopback(0, 83)] as const;
const COMMON = ['--name', `sample-${process.pid}`, '--mib', '2', '--rounds', '3'];

describe('shared-array', () => {
  it('is written by one process, and read by another one where it lies', async () => {
    const serving = new Program('shared-array', 'serve', '-a', SERVES, ...COMMON);
    const watching = new Program('shared-array', 'watch', '-a', WATCHES, ...COMMON);
    try {
      await Promise.all([serving.printed(/listening/), watching.printed(/watching/)]);
      const to = ['--to', SERVES];
      const writing = new Program('shared-array', 'write', '-a', WRITES, ...to, ...COMMON);
      const { code, stdout, stderr } = await writing.ended;
      assert.deepEqual([code, stderr], [0, '']);
      assert.match(stdout, /round 1: [\d.]+ GB\/s\nround 2: .*\nround 3: /);
      const seen = await watching.ended;
      assert.equal(seen.code, 0, seen.stderr);
      const sum = (2 ** 19 / 1024) * ((1023 * 1024) / 2) + 2 ** 19 * 3;
      assert.match(seen.stdout, new RegExp(`round 3: 524288 numbers, sum ${sum}\\n$`));
      const served = await serving.ended;
      assert.equal(served.code, 0, served.stderr);
    } finally {
      serving.kill('SIGKILL');
      watching.kill('SIGKILL');
    }
  });

  it('says what is wrong with the size', async () => {
    const serving = new Program('shared-array', 'watch', '-a', WATCHES, ...COMMON);
    try {
      await serving.printed(/watching/);
      const name = COMMON.slice(0, 2);
      const other = await runSample('shared-array', 'watch', '-a', WRITES, ...name, '--mib', '4');
      assert.equal(other.code, 1);
      assert.match(other.stderr, /^shared-array: the memory of that name has 2101248 bytes/);
    } finally {
      serving.kill('SIGKILL');
    }
  });
});
