import assert from 'node:assert/strict';
import { runExample } from '../../support/docs-example.js';

describe('docs/mock.md', () => {
  it('has an example that runs', async () => {
    assert.match(await runExample('mock'), /^\d+ packets were lost on purpose\n$/);
  });
});
