import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { POINTS } from '../../samples/policies/cases.js';
import { loopback } from '../support/loopback.js';
import { runSample } from './program.js';

const root = join(import.meta.dirname, '../../..');
const ADDRESSES = [loopback(2, 75), loopback(2, 76)];

/** What each point shows, on every provider. */
const SHOWN: readonly string[] = [
  '0,1,2,3: 1 at a time',
  '0,1,2 in progress, 5 wait in the dispatcher',
  'begins, ends, torndown; 2 wait',
  '0,1,2,3 in one call, 1 deep',
  'REMOTE_ACCESS once; the messages complete, 0 more; DISCONNECTED',
  '0,1, without another stimulus',
  'paused, 0 upcalls; dequeued 0,1,2',
  '0,1,2,3,4,5 in three bursts',
  'the handler of message 0; then 1',
  '4 wait; first 0, second 1, first 2, second 3',
  '0,1,2,3,4,5; refused 1 time',
  '2 batches, 1,1 events',
  'evd.modifyUpcall(evd=7, policy=ONE evd.modifyUpcall(evd=7, policy=TEARDOWN)',
];

describe('sample policies', () => {
  for (const provider of ['mock', 'softroce']) {
    it(`shows each point over ${provider}`, async () => {
      const args = ['--provider', provider, '--addresses', ...ADDRESSES];
      const { code, stdout, stderr } = await runSample('policies', ...args);
      assert.deepEqual([code, stderr], [0, '']);
      const shown = [...stdout.matchAll(/^ {2}now: {2}(.*)$/gm)].map(([, text]) => text);
      assert.deepEqual(shown, SHOWN);
      const words = [...stdout.matchAll(/^ {2}then: .{30}/gm)];
      assert.equal(words.length, POINTS.length, 'each has words beside it');
    });
  }

  it('has a point for each question of the review', () => {
    const page = readFileSync(join(root, 'docs/discussions.md'), 'utf8');
    const asked = [...page.matchAll(/^### (2\.\d+) /gm)].map(([, number]) => number);
    const answered = new Set(POINTS.flatMap(({ questions }) => questions));
    assert.ok(asked.length > 20);
    assert.deepEqual([...answered].sort(), asked.sort());
  });
});
