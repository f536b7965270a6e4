import assert from 'node:assert/strict';
import { runExample } from '../../support/printed-program.js';

describe('docs/mock.md', () => {
  it('has an example that runs', async () => {
    const { stdout } = await runExample('mock');
    assert.match(stdout, /^\d+ packets were lost on purpose\n$/);
  });
});
