import assert from 'node:assert/strict';
import { DatError } from '../../../core/errors/index.js';
import { createRegistry } from '../../../core/registry/index.js';
import {
  type ConfiguredPlugin,
  definePlugin,
  type PluginMeta,
  type ProviderInstance,
} from '../../../core/spi/index.js';

const META = {
  name: 'p',
  kind: 'provider',
  sdkVersion: '1.0',
  requires: [],
  provides: [],
} as const;
const INSTANCE: ProviderInstance = { deviceKey: 'x', open: async () => undefined };

function provider(meta: Partial<PluginMeta> = {}): ConfiguredPlugin<'provider'> {
  return definePlugin({ ...META, ...meta, kind: 'provider' }, () => INSTANCE)(undefined);
}

function cm(meta: Partial<PluginMeta> = {}): ConfiguredPlugin<'cm'> {
  const make = (): never => {
    throw new Error('not made here');
  };
  return definePlugin({ ...META, name: 'c', ...meta, kind: 'cm', inject: {} }, make)(undefined);
}

function fails(call: () => unknown, code: string, subtype: string | undefined, text: RegExp): void {
  assert.throws(call, (error) => {
    assert.ok(DatError.isDatError(error));
    assert.equal(error.code, code);
    assert.equal(error.subtype, subtype);
    assert.match(error.message, text);
    return true;
  });
}

describe('registry', () => {
  it('lists what is registered, by kind', () => {
    const registry = createRegistry({ plugins: [provider(), cm({ requires: [] })] });
    registry.register(provider(), 'second');
    assert.deepEqual(
      registry.list('provider').map((item) => item.name),
      ['p', 'second'],
    );
    assert.equal(registry.list().length, 3);
    registry.unregister('second');
    assert.equal(registry.list('provider').length, 1);
  });

  it('refuses what is not a configured plugin, and says what it is', () => {
    const plugin = definePlugin(META, () => INSTANCE);
    const register = (value: unknown) => () =>
      createRegistry().register(value as ConfiguredPlugin<'provider'>);
    fails(register(plugin), 'DAT_INVALID_PARAMETER', 'DAT_INVALID_ARG1', /call the plugin with/);
    fails(register({}), 'DAT_INVALID_PARAMETER', 'DAT_INVALID_ARG1', /an object is not a conf/);
    fails(register(undefined), 'DAT_INVALID_PARAMETER', 'DAT_INVALID_ARG1', /undefined is not/);
  });

  it('refuses plugins of another SDK version, naming both', () => {
    const register = (sdkVersion: string) => () =>
      createRegistry({ plugins: [provider({ sdkVersion })] });
    const code = 'DAT_PROVIDER_NOT_FOUND';
    fails(
      register('2.0'),
      code,
      'DAT_MAJOR_NOT_FOUND',
      /"p" was written for SDK 2\.0; this is 1\./,
    );
    fails(register('1.9'), code, 'DAT_MINOR_NOT_FOUND', /SDK 1\.9; this is 1\./);
  });

  it('refuses a second plugin of a name and kind', () => {
    const code = 'DAT_PROVIDER_ALREADY_REGISTERED';
    const call = (): unknown => createRegistry({ plugins: [provider(), provider()] });
    fails(call, code, undefined, /the name "p" is taken by provider plugin "p"/);
  });

  it('refuses what requires a capability that nobody provides, naming both sides', () => {
    const needsMad = cm({ requires: ['mad'] });
    const call = (): unknown =>
      createRegistry({ plugins: [provider({ provides: ['rc'] }), needsMad] });
    const text =
      /cm plugin "c" requires "mad", which none provides: provider plugin "p" provides rc/;
    fails(call, 'DAT_MODEL_NOT_SUPPORTED', undefined, text);
    createRegistry({ plugins: [needsMad, provider({ provides: ['mad'] })] });
    const registry = createRegistry();
    fails(() => registry.register(needsMad), 'DAT_MODEL_NOT_SUPPORTED', undefined, /nothing else/);
    assert.equal(registry.list().length, 0);
  });

  it('names the providers there are when one is not', async () => {
    const registry = createRegistry({ plugins: [provider()] });
    await assert.rejects(registry.openIa('q'), (error) => {
      assert.ok(DatError.isDatError(error));
      assert.equal(error.code, 'DAT_PROVIDER_NOT_FOUND');
      assert.equal(error.subtype, 'DAT_NAME_NOT_REGISTERED');
      assert.match(error.message, /registered as "q"; there are p/);
      return true;
    });
    fails(() => registry.unregister('q'), 'DAT_PROVIDER_NOT_FOUND', 'DAT_NAME_NOT_REGISTERED', /q/);
  });
});
