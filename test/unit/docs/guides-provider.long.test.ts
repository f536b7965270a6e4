// docs/guides/write-a-provider.md: the provider passes all three suites.

import assert from 'node:assert/strict';
import { providerPackage } from '../../support/provider-guide.js';

describe('docs/guides, write a provider, all suites', () => {
  it('pass, under faults too', async () => {
    const { stdout } = await providerPackage().run(['conformance.mjs']);
    const [, passed, failed] = /^all +(\d+) +(\d+) /m.exec(stdout) ?? [];
    assert.equal(failed, '0', stdout);
    assert.ok(Number(passed) > 600, stdout);
  });
});
