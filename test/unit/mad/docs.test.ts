import assert from 'node:assert/strict';
import { runExample } from '../../support/printed-program.js';

describe('docs/mad.md', () => {
  it('has an example that runs', async () => {
    assert.equal((await runExample('mad')).stdout, '260000 bytes from 10.0.0.1\n');
  });
});
