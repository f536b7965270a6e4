/** What modules inject is what they are given, over any provider; what cannot be is refused. */
import assert from 'node:assert/strict';
import { DatError, type Ia, openIa, type OpenIaOptions } from '../../../core/index.js';
import {
  CLOCK,
  CM,
  type CmModule,
  type ConfiguredModule,
  type ConfiguredProvider,
  definePlugin,
  DEVICE,
  type Inject,
  type Injected,
  LOGGER,
  MAD,
  type MadModule,
  type ModuleKind,
  type ModuleTypes,
  optional,
  PACKET_PORT,
  type PacketPort,
  type Part,
  part,
  type Registrar,
  SpiError,
  token,
  type Token,
  withModules,
  XRC,
} from '../../../core/spi/index.js';
import { counting } from '../../support/counting.js';
import { FakeProvider } from '../../support/fake-provider.js';

function module<K extends ModuleKind, const I extends Inject>(
  kind: K,
  name: string,
  inject: I,
  make: (deps: Injected<I>) => ModuleTypes[K],
): ConfiguredModule<K> {
  const meta = { name, kind, sdkVersion: '2.0', requires: [], provides: [] } as const;
  return definePlugin({ ...meta, inject }, make)(undefined) as ConfiguredModule<K>;
}

/** Over the CM that is there; notes its calls. */
function wrapper(name: string, calls: string[]): ConfiguredModule<'cm'> {
  return module('cm', name, { own: CM }, ({ own }) =>
    counting(own, (call) => void calls.push(`${name}: ${call}`)),
  );
}

function refused(text: RegExp): (error: unknown) => boolean {
  return (error) => {
    assert.ok(DatError.isDatError(error), String(error));
    assert.equal(error.code, 'DAT_MODEL_NOT_SUPPORTED');
    assert.match(error.message, text);
    return true;
  };
}

/** The adapter does not open, and the device does not stay open. */
async function refuses(fake: FakeProvider, opening: Promise<Ia>, text: RegExp): Promise<void> {
  await assert.rejects(opening, refused(text));
  assert.equal(fake.device.closed, 1);
}

describe('injection', () => {
  let fake: FakeProvider;
  let provider: ConfiguredProvider;
  let calls: string[];
  const open = (modules: OpenIaOptions['modules'] = {}): Promise<Ia> =>
    openIa(provider, { modules });
  beforeEach(() => {
    fake = new FakeProvider();
    provider = fake.plugin();
    calls = [];
  });

  it('gives a module what it names, under its names', async () => {
    const seen: unknown[] = [];
    const inject = { mad: MAD, clock: CLOCK, xrc: optional(XRC), device: optional(DEVICE) };
    const mine = module('cm', 'mine', inject, (deps) => {
      seen.push(Object.keys(deps), deps.clock === fake.world, deps.xrc, deps.device);
      return fake.cm;
    });
    await (await open({ cm: mine })).close();
    const names = ['mad', 'clock', 'xrc', 'device'];
    assert.deepEqual(seen.slice(0, 3), [names, true, undefined]);
    assert.equal(seen[3], fake.device);
    assert.deepEqual(fake.device.ended, ['cm', 'mad', 'device']);
  });

  it('gives a module that names its own token what would be there without it', async () => {
    provider = withModules(provider, wrapper('first', calls), wrapper('second', calls));
    const ia = await open({ cm: wrapper('third', calls) });
    ia.createPsp({ connQual: 7 });
    assert.deepEqual(calls, ['third: listen', 'second: listen', 'first: listen']);
    assert.equal(fake.cm.listeners.size, 1);
    calls.length = 0;
    await ia.close();
    assert.deepEqual(calls.splice(-3), ['third: close', 'second: close', 'first: close']);
    assert.ok(!calls.some((call) => call.endsWith('close')));
    assert.equal(fake.cm.closed, 1);
  });

  it('wraps what replaces, and makes nothing of what is replaced', async () => {
    const other = new FakeProvider();
    const made: string[] = [];
    const own = module('mad', 'unmade', { own: MAD }, (deps) => (made.push('mad'), deps.own));
    const replacing = module('cm', 'replacing', {}, () => other.cm);
    provider = withModules(provider, own, replacing);
    const ia = await open({ cm: wrapper('over', calls) });
    ia.createPsp({ connQual: 7 });
    assert.equal(other.cm.listeners.size, 1);
    await ia.close();
    assert.deepEqual(made, [], 'only the CM of the provider wanted one');
    assert.deepEqual([other.cm.closed, fake.cm.closed], [1, 0]);
    assert.deepEqual(fake.device.ended, ['device']);
  });

  it('gives other modules the one on top', async () => {
    const seen: MadModule[] = [];
    const mad = module('mad', 'traced', { own: MAD }, ({ own }) => {
      const traced = counting(own, () => undefined);
      seen.push(traced);
      return traced;
    });
    const mine = module('cm', 'mine', { own: CM, mad: MAD }, (deps) => {
      seen.push(deps.mad);
      return deps.own;
    });
    const ia = await open({ cm: mine, mad });
    await ia.close();
    assert.equal(seen.length, 2);
    assert.equal(seen[0], seen[1]);
    assert.deepEqual(fake.device.ended, ['cm', 'mad', 'device'], 'each once');
  });

  it('wraps the device, for core and for modules', async () => {
    const seen: unknown[] = [];
    const device = module('device', 'traced', { own: DEVICE }, ({ own }) => {
      const traced = counting(own, (call) => void calls.push(call));
      seen.push(traced);
      return traced;
    });
    const mine = module('cm', 'mine', { own: CM, device: DEVICE }, (deps) => {
      seen.push(deps.device);
      return deps.own;
    });
    const ia = await open({ cm: mine, device });
    ia.createPz().free();
    await ia.close();
    assert.equal(seen[0], seen[1]);
    assert.ok(calls.includes('createProtectionDomain'));
    assert.equal(calls.filter((call) => call === 'close').length, 1);
    assert.equal(fake.device.closed, 1);
  });

  it('makes nothing that is not needed: over a port that is not there', async () => {
    const port = module('port', 'tap', { own: PACKET_PORT }, () => assert.fail('no port'));
    await (await open({ port })).close();
  });

  it('refuses a module over nothing, and names it', async () => {
    const xrc = module('xrc', 'traced', { own: XRC }, ({ own }) => own);
    const text = /xrc plugin "traced" wraps dapl:xrc, and provider plugin "fake" has none/;
    await refuses(fake, open({ xrc }), text);
  });

  it('refuses a module that needs what is not there, and names both', async () => {
    const mine = module('cm', 'mine', { port: PACKET_PORT }, () => fake.cm);
    const text = /cm plugin "mine" needs dapl:packet-port, and provider plugin "fake" has none/;
    await refuses(fake, open({ cm: mine }), text);
    assert.deepEqual(fake.device.ended, ['device'], 'nothing else was made');
  });

  it('refuses at registration what no plugin provides', async () => {
    const mine = module('cm', 'mine', { xrc: XRC, mad: optional(MAD), own: CM }, () => fake.cm);
    assert.deepEqual(mine.meta.requires, ['xrc']);
    await assert.rejects(
      open({ cm: mine }),
      refused(/cm plugin "mine" requires "xrc", which none/),
    );
    assert.equal(fake.opened, 0);
  });

  it('refuses modules that are made of each other, and names the chain', async () => {
    const mine = module('cm', 'mine', { mad: MAD }, () => fake.cm);
    const yours = module('mad', 'yours', { own: MAD, cm: CM }, ({ own }) => own);
    const text = /cm plugin "mine" needs mad plugin "yours" needs cm plugin "mine"/;
    await refuses(fake, open({ cm: mine, mad: yours }), text);
  });

  it('refuses a cycle by way of an optional one, and by the device', async () => {
    const device = module('device', 'odd', { own: DEVICE, cm: optional(CM) }, ({ own }) => own);
    const mine = module('cm', 'mine', { device: DEVICE }, () => fake.cm);
    const text = /device plugin "odd" needs cm plugin "mine" needs device plugin "odd"/;
    await refuses(fake, open({ device, cm: mine }), text);
  });

  it('refuses a provider that leaves something out, or makes it of itself', async () => {
    const opening = (bind: (registrar: Registrar) => void): Promise<Ia> => {
      const instance = {
        deviceKey: 'odd',
        open: async (registrar: Registrar) => {
          await fake.open(registrar);
          bind(registrar);
        },
      };
      return openIa({ ...provider, instance });
    };
    const none = token<number>('test/none');
    await refuses(
      fake,
      opening((registrar) =>
        registrar.bind(
          CM,
          part({ none }, () => fake.cm),
        ),
      ),
      /dapl:cm of provider plugin "fake" needs dapl:test\/none/,
    );
    fake = new FakeProvider();
    await refuses(
      fake,
      opening((registrar) =>
        registrar.bind(
          CM,
          part({ own: CM }, ({ own }) => own),
        ),
      ),
      /dapl:cm of provider plugin "fake" wraps dapl:cm/,
    );
    const bare = definePlugin({ ...provider.meta, requires: [] }, () => ({
      deviceKey: 'bare',
      open: async () => undefined,
    }));
    await assert.rejects(
      openIa(bare({})),
      refused(/core needs dapl:clock, and provider plugin "f/),
    );
  });

  it('ends what a wrapper that cannot be made would have wrapped', async () => {
    const broken = module('cm', 'broken', { own: CM }, () => {
      throw new SpiError('EIO', 'no trace today');
    });
    const text = /^DatError: openIa: cm plugin "broken": no trace today \[DAT_INTERNAL_ERROR\]$/;
    await assert.rejects(open({ cm: broken }), text);
    assert.deepEqual(fake.device.ended, ['cm', 'mad', 'device']);
  });

  it('refuses what a module makes that is none, and names it', async () => {
    const rows: readonly (readonly [unknown, RegExp])[] = [
      [undefined, /cm plugin "odd" made undefined; it must make an object with connect, listen,/],
      [Promise.resolve(fake.cm), /cm plugin "odd" made a Promise; it must make an object with/],
      [{ connect: () => undefined }, /cm plugin "odd" made an object;/],
    ];
    for (const [result, text] of rows) {
      await assert.rejects(open({ cm: module('cm', 'odd', {}, () => result as CmModule) }), text);
    }
    const throwing = module('mad', 'odd', {}, () => {
      throw new TypeError('x is not a function');
    });
    const text = /openIa: mad plugin "odd" failed: x is not a function .*DAT_INTERNAL_ERROR/;
    await assert.rejects(open({ mad: throwing }), text);
    assert.equal(fake.device.closed, 4);
  });

  describe('of a provider with a packet port', () => {
    let closedPorts: string[];
    const port = (name: string): PacketPort =>
      ({
        receive: () => 0,
        place: () => undefined,
        send: (_from, to) => to,
        close: async () => void closedPorts.push(name),
      }) as Partial<PacketPort> as PacketPort;
    const withPort = (make: (port: PacketPort) => void): ConfiguredProvider => {
      const open = async (registrar: Registrar): Promise<void> => {
        await fake.open(registrar);
        registrar.bind(PACKET_PORT, () => port('own'));
        const device = part({ port: PACKET_PORT }, (deps) => (make(deps.port), fake.device));
        registrar.bind(DEVICE, device);
      };
      return { ...provider, instance: { deviceKey: 'ported', open } };
    };
    beforeEach(() => {
      closedPorts = [];
    });

    it('makes the device of the port that stands over it', async () => {
      const over = port('over');
      const tap = module('port', 'tap', { own: PACKET_PORT, logger: LOGGER }, () => over);
      const seen: unknown[] = [];
      provider = withModules(
        withPort((each) => void seen.push(each)),
        tap,
      );
      const ia = await openIa(provider);
      assert.deepEqual(seen, [over]);
      // For what listens in, the first opening decides.
      const another = module('port', 'tap', { own: PACKET_PORT }, ({ own }) => own);
      await (await open({ port: another })).close();
      await ia.close();
    });

    it('ends the port when the device cannot be made of it', async () => {
      const fails = (): never => {
        throw new SpiError('EINVAL', 'not of this port');
      };
      await assert.rejects(openIa(withPort(fails)), /not of this port/);
      assert.deepEqual(closedPorts, ['own']);
    });

    it('ends the own port when what stands over it cannot be made', async () => {
      const tap = module('port', 'tap', { own: PACKET_PORT }, () => {
        throw new SpiError('EIO', 'no room for a capture');
      });
      const made: unknown[] = [];
      provider = withPort((each) => void made.push(each));
      await assert.rejects(open({ port: tap }), /no room for a capture/);
      assert.deepEqual([closedPorts, made], [['own'], []]);
    });
  });

  it('compares whole stacks when a device is open', async () => {
    const [one, two] = [wrapper('one', calls), wrapper('two', calls)];
    const ia = await openIa(withModules(provider, one), { modules: { cm: two } });
    await (await openIa(provider)).close();
    await (await openIa(withModules(provider, one, two))).close();
    for (const other of [withModules(provider, one), withModules(provider, two, one)]) {
      await assert.rejects(openIa(other), (error) => {
        assert.ok(DatError.isDatError(error));
        assert.equal(error.subtype, 'DAT_INVALID_STATE_IA_IN_USE');
        assert.match(error.message, /open with cm plugin "one" under cm plugin "two" for cm/);
        return true;
      });
    }
    await ia.close();
  });

  it('refuses what is no module where modules belong', () => {
    for (const value of [provider, {}, undefined, wrapper]) {
      const given = value as unknown as ConfiguredModule;
      const text = /^DatError: withModules: one of the modules is .*; it must be a configured mod/;
      assert.throws(() => withModules(provider, given), text);
    }
    const noProvider = wrapper('cm', calls) as never;
    assert.throws(() => withModules(noProvider), /^DatError: withModules: the provider is an obj/);
    const fails = (inject: unknown, kind: string, text: RegExp): void => {
      const meta = { name: 'x', sdkVersion: '2.0', requires: [], provides: [], kind, inject };
      assert.throws(() => definePlugin(meta as never, () => fake.cm), text);
    };
    fails(undefined, 'cm', /plugin "x": inject is undefined; it must be tokens by name/);
    fails({ mad: undefined }, 'cm', /plugin "x": inject.mad is undefined; it must be a token/);
    fails({ mad: optional(undefined as never) }, 'cm', /inject\.mad is .*; it must be a token/);
    fails({}, 'provider', /plugin "x": inject is an object; it must be left out/);
  });

  it('has the types of what is injected', () => {
    const meta = { name: 't', kind: 'cm', sdkVersion: '2.0', requires: [], provides: [] } as const;
    const inject = { own: CM, mad: MAD, xrc: optional(XRC) };
    const plugin = definePlugin({ ...meta, inject }, (deps, options: { readonly n: number }) => {
      const own: CmModule = deps.own;
      const mad: MadModule = deps.mad;
      // @ts-expect-error there may be none
      void deps.xrc.close();
      // @ts-expect-error not injected
      deps.clock satisfies unknown;
      // @ts-expect-error another type
      const wrong: CmModule = deps.mad;
      return options.n > 0 ? own : (wrong satisfies CmModule, mad && own);
    });
    plugin({ n: 1 }) satisfies ConfiguredModule<'cm'>;
    // @ts-expect-error options are typed
    plugin({ n: '1' }) satisfies unknown;
    // @ts-expect-error a MAD module is no CM module
    definePlugin({ ...meta, inject }, ({ mad }) => mad) satisfies unknown;
    // @ts-expect-error a module injects something, or says that it does not
    assert.throws(() => definePlugin(meta, () => fake.cm), TypeError);
    // @ts-expect-error a CM plugin is no MAD plugin
    ({ mad: wrapper('w', calls) }) satisfies OpenIaOptions['modules'];
    // @ts-expect-error tokens know their types
    MAD satisfies Token<CmModule>;
    const ofMad = part({ mad: MAD }, ({ mad }) => mad) satisfies Part<MadModule>;
    // @ts-expect-error a part is of the type of its token
    const bind = (registrar: Registrar): void => registrar.bind(CM, ofMad);
    assert.equal(typeof bind, 'function');
  });
});
