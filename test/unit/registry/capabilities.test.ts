// What a module requires of the device is looked for in one list of each provider.

import assert from 'node:assert/strict';
import { openIa } from 'dapl';
import { CM, type ConfiguredModule, definePlugin, withModules } from 'dapl/spi';
import { decorate } from 'dapl/spi/decorators';
import { PROVIDER_PAIRS } from '../../support/every-provider.js';

/** A CM that is the provider's own, and needs windows. */
function needsWindows(): ConfiguredModule<'cm'> {
  const meta = { name: 'needy', kind: 'cm', sdkVersion: '2.0', provides: [] } as const;
  const inject = { inner: CM };
  return definePlugin({ ...meta, requires: ['memory-window'], inject }, ({ inner }) => inner)();
}

describe('A module that requires memory windows', () => {
  for (const [name, pair] of Object.entries(PROVIDER_PAIRS)) {
    if (name === "a stranger's") continue;
    it(`opens over ${name}`, async () => {
      const ia = await openIa(withModules(pair().active, needsWindows()));
      await ia.close();
    });
  }

  it('is refused where the open device has none, with the name of the device', async () => {
    const { active } = PROVIDER_PAIRS['mock']!();
    const without = decorate(active, { device: () => ({ capabilities: new Set(['rc']) }) });
    await assert.rejects(openIa(withModules(without, needsWindows())), {
      code: 'DAT_MODEL_NOT_SUPPORTED',
      message: /plugin "needy" requires "memory-window", which device ".*" has not/,
    });
  });
});
