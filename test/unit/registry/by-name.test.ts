import assert from 'node:assert/strict';
import { createRegistry, DatError, parseDatConf, type Registry } from '../../../core/index.js';
import type { ConfiguredPlugin, DatProviderInit } from '../../../core/spi/index.js';
import { FakeProvider } from '../../support/fake-provider.js';

type Provider = ConfiguredPlugin<'provider'>;

function fails(subtype: string, text = /./): (error: unknown) => boolean {
  return (error) => {
    assert.ok(DatError.isDatError(error), String(error));
    assert.equal(error.subtype ?? error.code, subtype, error.message);
    assert.match(error.message, text);
    return true;
  };
}

const CONF = [
  'a  u2.0 nonthreadsafe default one.js x.1.0 "first"  ""',
  'a  u2.0 nonthreadsafe default two.js x.1.0 "second" ""',
  'b  u2.3 threadsafe    default one.js x.1.0 "b" ""',
  'old u1.2 nonthreadsafe default one.js x.1.0 "" ""',
  'k  k2.0 nonthreadsafe default one.js x.1.0 "" ""',
  'n  u2.0 nonthreadsafe nondefault one.js x.1.0 "" ""',
  'oops',
].join('\n');

/** A registry over CONF, whose libraries are given here. */
function withLibraries(libraries: Readonly<Record<string, unknown>>): {
  readonly registry: Registry;
  readonly loaded: string[];
} {
  const loaded: string[] = [];
  const registry = createRegistry({
    datConf: parseDatConf(CONF),
    load: async (libPath) => {
      loaded.push(libPath);
      const library = libraries[libPath];
      if (library === undefined) throw new Error(`no ${libPath} here`);
      return library;
    },
  });
  return { registry, loaded };
}

const library = (plugin: Provider): { readonly datProviderInit: DatProviderInit } => ({
  datProviderInit: () => plugin,
});

describe('adapters by name', () => {
  it('lists default lines of the user API; loads nothing for it', () => {
    const { registry, loaded } = withLibraries({});
    const names = registry.listProviders().map(({ iaName, libPath }) => `${iaName} ${libPath}`);
    assert.deepEqual(names, ['a one.js', 'a two.js', 'b one.js', 'old one.js']);
    assert.deepEqual(loaded, []);
    assert.equal(registry.datConfErrors.length, 1);
  });

  it('loads the library when an adapter is opened, once, and hands it the line', async () => {
    const fake = new FakeProvider();
    const calls: unknown[][] = [];
    const datProviderInit: DatProviderInit = (...args) => {
      calls.push(args);
      return fake.plugin();
    };
    const { registry, loaded } = withLibraries({ 'one.js': { datProviderInit } });
    const [first, second] = await Promise.all([registry.openIa('b'), registry.openIa('b')]);
    assert.deepEqual(loaded, ['one.js']);
    assert.equal(calls.length, 1);
    assert.equal(calls[0]?.[1], 'b');
    assert.equal((calls[0]?.[0] as { iaName: string }).iaName, 'b');
    assert.equal(first.query().provider.providerName, 'b');
    assert.equal(fake.opened, 1);
    await first.close();
    await second.close();
  });

  it('tries the next line of a name when a library does not load', async () => {
    const fake = new FakeProvider();
    const { registry, loaded } = withLibraries({ 'two.js': library(fake.plugin()) });
    const ia = await registry.openIa('a');
    assert.deepEqual(loaded, ['one.js', 'two.js']);
    await ia.close();
  });

  it('says of each line why it does not load', async () => {
    const { registry } = withLibraries({ 'two.js': {} });
    const text = /2 providers called "a" .*no one\.js here.*two\.js exports no function datProv/;
    await assert.rejects(registry.openIa('a'), fails('DAT_NAME_NOT_REGISTERED', text));
    const single = /"b": cannot load one\.js: no one\.js here/;
    await assert.rejects(registry.openIa('b'), fails('DAT_NAME_NOT_REGISTERED', single));
    const refusing: DatProviderInit = () => {
      throw new Error('no such port');
    };
    const other = withLibraries({ 'one.js': { datProviderInit: refusing } });
    const refused = /one\.js refuses its ia_params "b": no such port/;
    await assert.rejects(other.registry.openIa('b'), fails('DAT_NAME_NOT_REGISTERED', refused));
  });

  it('loads again after a failure', async () => {
    const libraries: Record<string, unknown> = {};
    const { registry } = withLibraries(libraries);
    await assert.rejects(registry.openIa('b'), fails('DAT_NAME_NOT_REGISTERED'));
    libraries['one.js'] = library(new FakeProvider().plugin());
    await (await registry.openIa('b')).close();
  });

  const misses: readonly (readonly [object | string, string, RegExp])[] = [
    [
      'c',
      'DAT_NAME_NOT_REGISTERED',
      /as "c"; there are a, b, old \(.*skipped: 1, first dat\.conf:7/,
    ],
    ['k', 'DAT_NAME_NOT_REGISTERED', /as "k"/],
    ['n', 'DAT_NAME_NOT_REGISTERED', /as "n"/],
    ['old', 'DAT_MAJOR_NOT_FOUND', /"old" u2\.0; there are "old" u1\.2 nonthreadsafe/],
    [{ name: 'a', version: '3.0' }, 'DAT_MAJOR_NOT_FOUND', /"a" u3\.0/],
    [{ name: 'a', version: '2.1' }, 'DAT_MINOR_NOT_FOUND', /"a" u2\.1; there are "a" u2\.0/],
    [{ name: 'a', threadSafe: true }, 'DAT_THREAD_SAFETY_NOT_FOUND', /threadsafe; there are "a"/],
    [{ name: 'b', threadSafe: false }, 'DAT_THREAD_SAFETY_NOT_FOUND', /"b" u2\.0 nonthreadsafe/],
    [{ name: '' }, 'DAT_INVALID_ARG1', /name is ""/],
    [{ name: 'x'.repeat(256) }, 'DAT_INVALID_ARG1', /1 to 255 characters/],
    [{ name: 'a', version: '2' }, 'DAT_INVALID_ARG4', /version is "2"; it must be a version/],
    [{ name: 'a', version: 2 }, 'DAT_INVALID_ARG4', /version is 2/],
    [{ name: 'a', threadSafe: 'yes' }, 'DAT_INVALID_ARG6', /threadSafe is "yes"/],
    [{ name: 'a', minor: 1 }, 'DAT_INVALID_ARG1', /an option is "minor"/],
  ];
  for (const [target, subtype, text] of misses) {
    it(`refuses ${JSON.stringify(target).slice(0, 40)} with ${subtype}`, async () => {
      const { registry } = withLibraries({});
      await assert.rejects(registry.openIa(target as string), fails(subtype, text));
    });
  }

  it('takes a minor version that is higher than asked for, and the exact thread flag', async () => {
    const fake = new FakeProvider();
    const { registry } = withLibraries({ 'one.js': library(fake.plugin()) });
    for (const version of ['2.0', '2.3']) {
      await (await registry.openIa({ name: 'b', version, threadSafe: true })).close();
    }
    await (await registry.openIa({ name: 'old', version: '1.0' })).close();
    await assert.rejects(
      registry.openIa({ name: 'b', version: '2.4' }),
      fails('DAT_MINOR_NOT_FOUND'),
    );
  });

  it('keeps registrations of a name apart by version and thread safety', async () => {
    const registry = createRegistry();
    const [plain, safe] = [new FakeProvider(), new FakeProvider()];
    registry.register(plain.plugin(), 'x');
    registry.register(safe.plugin(), { name: 'x', threadSafe: true });
    registry.register(safe.plugin(), { name: 'x', version: '2.1' });
    const again = (): void => registry.register(plain.plugin(), { name: 'x', version: '2.0' });
    assert.throws(again, fails('DAT_PROVIDER_ALREADY_REGISTERED'));
    await (await registry.openIa({ name: 'x', threadSafe: true })).close();
    assert.equal(safe.opened, 1);
    await (await registry.openIa('x')).close();
    assert.equal(plain.opened, 1);
    registry.unregister('x');
    assert.equal(registry.listProviders().length, 2);
  });

  it('opens a registered provider before a line of the same name', async () => {
    const fake = new FakeProvider();
    const { registry, loaded } = withLibraries({});
    registry.register(fake.plugin(), 'a');
    const ia = await registry.openIa('a');
    assert.deepEqual(loaded, []);
    assert.throws(() => registry.unregister('a'), fails('DAT_PROVIDER_IN_USE', /1 open interf/));
    await ia.close();
    registry.unregister('a');
    assert.equal(registry.listProviders().length, 4);
  });

  it('answers queries without leaving the adapter open', async () => {
    const fake = new FakeProvider();
    const registry = createRegistry({ plugins: [fake.plugin()] });
    const { ia, provider } = await registry.queryIa('fake');
    assert.equal(provider.providerName, 'fake');
    assert.equal(ia.iaAddress, '192.0.2.1');
    assert.equal(fake.device.closed, 1);
    registry.unregister('fake');
    await assert.rejects(registry.queryIa('fake'), fails('DAT_NAME_NOT_REGISTERED'));
  });

  it('asks both providers whether they are related', async () => {
    const answering = (answer?: boolean): Provider => {
      const fake = new FakeProvider();
      return Object.assign(fake, answer === undefined ? {} : { relatedTo: () => answer }).plugin();
    };
    const registry = createRegistry();
    registry.register(answering(true), 'yes');
    registry.register(answering(true), 'yes2');
    registry.register(answering(false), 'no');
    registry.register(answering(), 'silent');
    registry.register(answering(), 'silent2');
    const related = (a: string, b: string): Promise<string> => registry.providersRelated(a, b);
    assert.equal(await related('yes', 'yes2'), 'TRUE');
    assert.equal(await related('yes', 'silent'), 'TRUE');
    assert.equal(await related('silent', 'no'), 'FALSE');
    assert.equal(await related('yes', 'no'), 'CONFLICTING');
    assert.equal(await related('silent', 'silent2'), 'UNKNOWN');
    assert.equal(await related('silent', 'silent'), 'TRUE');
    await assert.rejects(related('yes', 'nobody'), fails('DAT_NAME_NOT_REGISTERED'));
  });
});
