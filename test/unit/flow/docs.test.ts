import assert from 'node:assert/strict';

import { runExample } from '../../support/printed-program.js';

describe('the guides of connections and channels', () => {
  it('docs/flow.md has an echo that runs', async () => {
    assert.deepEqual(await runExample('flow'), { stdout: 'hello\n', stderr: '' });
  });

  it('docs/channel.md has a message longer than all buffers that comes back', async () => {
    const { stdout } = await runExample('channel');
    assert.equal(stdout, '5000000 bytes came back\n');
  });
});
