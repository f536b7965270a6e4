import assert from 'node:assert/strict';
import { runExample } from '../../support/printed-program.js';

describe('docs/spi.md', () => {
  it('has a module that wraps, which runs', async () => {
    assert.equal((await runExample('spi')).stdout, 'an agent of class 7\n');
  });
});
