import assert from 'node:assert/strict';
import { DatError } from '../../../core/errors/index.js';
import { createRegistry } from '../../../core/registry/index.js';
import {
  type ConfiguredPlugin,
  definePlugin,
  kinds,
  type PluginMeta,
  type ProviderInstance,
  SpiError,
} from '../../../core/spi/index.js';

const META = {
  name: 'p',
  kind: 'provider',
  sdkVersion: '2.0',
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
      register('1.1'),
      code,
      'DAT_MAJOR_NOT_FOUND',
      /"p" was written for SDK 1\.1, and this is SDK 2\.0: other majors .* for SDK 2, or a dapl/,
    );
    const newer =
      /SDK 2\.9, and this is SDK 2\.0, which lacks what it may use .* \(update dapl, or/;
    fails(register('2.9'), code, 'DAT_MINOR_NOT_FOUND', newer);
  });

  it('refuses registrations and registries with options that there are not', () => {
    const registry = createRegistry();
    const register = (registration: object) => () => registry.register(provider(), registration);
    const code = 'DAT_INVALID_PARAMETER';
    fails(register({ nmae: 'x' }), code, 'DAT_INVALID_ARG2', /"nmae"; .*: did you mean "name"\?/);
    fails(register({ name: '' }), code, 'DAT_INVALID_ARG2', /name is ""; it must be a string that/);
    fails(
      register({ threadSafe: 1 }),
      code,
      'DAT_INVALID_ARG2',
      /threadSafe is 1; it must be a boo/,
    );
    fails(register({ version: 2 }), code, 'DAT_INVALID_ARG4', /version is 2; it must be a version/);
    assert.equal(registry.list().length, 0);
    const create = (options: object) => () => createRegistry(options);
    fails(
      create({ plugin: [] }),
      code,
      'DAT_INVALID_ARG1',
      /"plugin"; .*: did you mean "plugins"\?/,
    );
    fails(create({ plugins: {} }), code, 'DAT_INVALID_ARG1', /plugins is an object; .* an array/);
    fails(create({ load: 'x' }), code, 'DAT_INVALID_ARG1', /load is "x"; it must be a function/);
  });

  it('refuses what a provider makes that is none, when it is called, naming it', () => {
    for (const nothing of [undefined, null, 7, {}, { deviceKey: '' }, { deviceKey: 'x' }]) {
      const plugin = definePlugin(META, () => nothing as ProviderInstance);
      const text =
        /^p: provider plugin "p" made .*; it must make an object with deviceKey .* and op/;
      fails(() => plugin(), 'DAT_INTERNAL_ERROR', undefined, text);
    }
    const promised = definePlugin(META, (async () => INSTANCE) as never);
    fails(() => promised(), 'DAT_INTERNAL_ERROR', undefined, /"p" made a Promise; it must make/);
    const throwing = definePlugin(META, () => {
      throw new TypeError('no such thing');
    });
    const text = /^p: provider plugin "p" failed: no such thing /;
    fails(() => throwing(), 'DAT_INTERNAL_ERROR', undefined, text);
  });

  it('gives a plugin a table of its options', () => {
    const options = { size: kinds.integer(1, 9), name: kinds.optional(kinds.TEXT) };
    interface Options {
      readonly size: number;
      readonly name?: string;
    }
    const seen: Options[] = [];
    const plugin = definePlugin({ ...META, options }, (given: Options) => {
      seen.push(given);
      if (given.name === 'taken') throw new SpiError('EINVAL', 'name is "taken"');
      return INSTANCE;
    });
    const call = (given?: unknown) => () => plugin(given as Options);
    const [code, arg] = ['DAT_INVALID_PARAMETER', 'DAT_INVALID_ARG1'];
    fails(call(), code, arg, /^p: size is undefined; it must be an integer from 1 to 9 /);
    fails(call({ size: 10 }), code, arg, /^p: size is 10; it must be an integer from 1 to 9 /);
    fails(call({ siez: 1 }), code, arg, /^p: an option is "siez"; .*: did you mean "size"\? /);
    fails(call({ size: 1, name: 'taken' }), code, arg, /^p: name is "taken" /);
    assert.equal(seen.length, 1);
    assert.equal('options' in plugin.meta, false);
    const less = { ...META, options: {} };
    // @ts-expect-error a table has all options
    assert.throws(() => definePlugin(less, (_: Options) => INSTANCE)({ size: 1 }), DatError);
  });

  it('refuses capabilities that there are not, when the plugin is defined', () => {
    const define = (meta: object) => () => definePlugin({ ...META, ...meta }, () => INSTANCE);
    const unknown = /^TypeError: plugin "p": a capability is "atomc"; .*: did you mean "atomic"\?$/;
    assert.throws(define({ provides: ['rc', 'atomc'] }), unknown);
    assert.throws(define({ requires: ['atomc'] }), unknown);
    const prefix = /it must be one of rc, .*, or one of your own with a prefix, as "acme:trace"$/;
    assert.throws(define({ provides: ['turbo:'] }), prefix);
    define({ provides: ['acme:turbo'], requires: ['acme:turbo'] })();
    const meta = /^TypeError: definePlugin: meta is undefined; it must be an object$/;
    assert.throws(() => definePlugin(undefined as never, () => INSTANCE), meta);
    const create = /^TypeError: definePlugin: create is undefined; it must be a function$/;
    assert.throws(() => definePlugin(META, undefined as never), create);
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
