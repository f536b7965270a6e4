// docs/guides/tuning.md and without-hardware.md: their programs run, and write what the pages say.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { blocksOf, guide, ProgramFolder } from '../../support/guide-page.js';

describe('docs/guides/tuning.md', () => {
  const page = guide('tuning');
  const folder = new ProgramFolder().addAll(page);

  it('shows by counters what too few receives cost', async () => {
    const [output = ''] = blocksOf(page, 'text');
    assert.match(output, /^2 receives: [1-9]\d+ RNR NAKs.*\n.*\n128 receives: 0 RNR NAKs/);
    assert.match(output, /\n2 receives: 0 RNR NAKs.*\n$/);
    assert.deepEqual(await folder.run(['receives.mjs']), { stdout: output, stderr: '' });
  });

  it('sends and receives without copies', async () => {
    const { stdout } = await folder.run(['copies.mjs']);
    assert.equal(stdout, '1000 7\n4194304 true\n');
  });
});

describe('docs/guides/without-hardware.md', () => {
  const folder = new ProgramFolder().addAll(guide('without-hardware'));

  it('has a program for any provider', async () => {
    for (const variables of [{ DAPL_PROVIDER: '' }, { DAPL_PROVIDER: 'softroce' }]) {
      assert.deepEqual(await folder.run(['main.mjs'], variables), { stdout: '6\n', stderr: '' });
    }
  });

  it('has a test of it on the mock', async () => {
    const { stdout } = await folder.run(['--test', '--test-reporter=tap', 'sum.test.mjs']);
    assert.match(stdout, /^ok 1 - a sum comes back over a network that loses packets$/m);
    assert.match(stdout, /^# pass 1\n# fail 0$/m);
  });

  it('has a program that closes when it is told to stop', async () => {
    const program = folder.start(['stop.mjs']);
    const output: string[] = [];
    program.stdout.setEncoding('utf8').on('data', (text: string) => {
      output.push(text);
      if (text.includes('listening')) program.kill('SIGTERM');
    });
    assert.deepEqual(await once(program, 'close'), [0, null]);
    assert.equal(output.join(''), 'listening\nclosed\n');
  });
});
