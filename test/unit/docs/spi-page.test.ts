import assert from 'node:assert/strict';
import { runExample } from '../../support/printed-program.js';

describe('docs/spi.md', () => {
  it('has a module that wraps, which runs', async () => {
    assert.equal((await runExample('spi')).stdout, 'an agent of class 7\n');
  });

  it('has one that is a class, without and with options', async () => {
    assert.equal((await runExample('spi', 'ts')).stdout, 'agent 7\nan agent of class 7\n');
  });
});
