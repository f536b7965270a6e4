// Modules as classes: `@plugin` above the class, `@inject` on what its constructor takes.

import assert from 'node:assert/strict';
import {
  createRegistry,
  DatError,
  type Ia,
  openIa,
  type OpenIaOptions,
} from '../../../core/index.js';
import { integer, optional as ifGiven } from '../../../core/spi/checks/index.js';
import { decorateModule } from '../../../core/spi/decorators/index.js';
import {
  CLOCK,
  type Clock,
  CM,
  type CmConnection,
  type CmConnectOptions,
  type CmListener,
  type CmListenOptions,
  type CmModule,
  type ConfiguredModule,
  DEVICE,
  type Device,
  inject,
  type Logger,
  LOGGER,
  MAD,
  type MadAgent,
  type MadModule,
  optional,
  OPTIONS,
  plugin,
  pluginOf,
  silentLogger,
  SpiError,
  withModules,
  XRC,
  type XrcModule,
} from '../../../core/spi/index.js';
import { FakeProvider } from '../../support/fake-provider.js';

const SDK = '2.0';

/** Over the CM that is there. */
abstract class OverCm implements CmModule {
  constructor(protected readonly inner: CmModule) {}

  connect(options: CmConnectOptions): CmConnection {
    return this.inner.connect(options);
  }

  listen(options: CmListenOptions): CmListener {
    return this.inner.listen(options);
  }

  close(): Promise<void> {
    return this.inner.close();
  }
}

/** Names of classes whose instances are created, then those that close. */
let log: string[] = [];

@plugin({ name: 'plain', kind: 'cm', sdkVersion: SDK })
class PlainCm extends OverCm {
  readonly given: readonly unknown[];

  constructor(
    @inject(CM) inner: CmModule,
    @inject(MAD) mad: MadModule,
    @inject(optional(XRC)) xrc: XrcModule | undefined,
    @inject({ clock: CLOCK, device: optional(DEVICE) })
    { clock, device }: { readonly clock: Clock; readonly device: Device | undefined },
    @inject(OPTIONS) options: { readonly limit?: number } | undefined,
  ) {
    super(inner);
    this.given = [mad, xrc, clock, device, options];
    log.push('PlainCm');
    seen.push(this);
  }

  override async close(): Promise<void> {
    log.push('PlainCm closes');
    await this.inner.close();
  }
}

let seen: PlainCm[] = [];

@plugin({ name: 'traced', kind: 'mad', sdkVersion: SDK })
class TracedMad implements MadModule {
  constructor(@inject(MAD) private readonly inner: MadModule) {
    log.push('TracedMad');
  }

  registerAgent(): MadAgent {
    throw new Error('no agents here');
  }

  async close(): Promise<void> {
    log.push('TracedMad closes');
    await this.inner.close();
  }
}

function refuses(code: string, message: RegExp): (error: unknown) => boolean {
  return (error) => {
    assert.ok(DatError.isDatError(error), String(error));
    assert.equal(error.code, code);
    assert.match(error.message, message);
    return true;
  };
}

describe('modules as classes', () => {
  let fake: FakeProvider;
  const open = (modules: OpenIaOptions['modules']): Promise<Ia> =>
    openIa(fake.plugin(), { modules: modules ?? {} });
  beforeEach(() => {
    fake = new FakeProvider();
    log = [];
    seen = [];
  });

  it('are given what their parameters name', async () => {
    const ia = await open({ cm: PlainCm });
    const [mad, ...rest] = seen[0]!.given;
    assert.equal(typeof (mad as MadModule).registerAgent, 'function');
    assert.deepEqual(rest, [undefined, fake.world, fake.device, undefined]);
    ia.createPsp({ connQual: 7 });
    assert.equal(fake.cm.listeners.size, 1);
    await ia.close();
  });

  it('are created once for a device, which several adapters share', async () => {
    const provider = fake.plugin();
    const lines: string[] = [];
    const logger = (name: string): Logger => ({
      debug: (message) => void lines.push(`${name}: ${message}`),
      info: () => undefined,
      warn: () => undefined,
      error: () => undefined,
      isDebugEnabled: () => true,
      child: () => logger(name),
    });
    const [one, two] = [
      await openIa(provider, { modules: { cm: PlainCm }, logger: logger('one') }),
      await openIa(provider, { modules: { cm: PlainCm }, logger: logger('two') }),
    ];
    assert.deepEqual(log, ['PlainCm']);
    one.createPz();
    two.createPz();
    assert.deepEqual(
      lines.filter((line) => line.includes('createPz')).map((line) => line.slice(0, 4)),
      ['one:', 'two:'],
      'each has a logger of its own',
    );
    await one.close();
    assert.deepEqual([log, fake.device.closed], [['PlainCm'], 0]);
    await two.close();
    assert.deepEqual([log, fake.device.closed], [['PlainCm', 'PlainCm closes'], 1]);
  });

  it('have a logger that names them', async () => {
    const children: unknown[] = [];
    const logger: Logger = {
      ...silentLogger,
      child: (fields) => {
        children.push(fields);
        return logger;
      },
    };
    @plugin({ name: 'logging', kind: 'mad', sdkVersion: SDK })
    class LoggingMad extends TracedMad {
      constructor(
        @inject(MAD) inner: MadModule,
        @inject(LOGGER) readonly logger: Logger,
      ) {
        super(inner);
      }
    }
    const ia = await openIa(fake.plugin(), { modules: { mad: LoggingMad }, logger });
    assert.deepEqual(children, [{ module: 'logging' }]);
    await ia.close();
  });

  it('have options, which are checked, and an instance for each device', async () => {
    @plugin({
      name: 'limited',
      kind: 'cm',
      sdkVersion: SDK,
      options: { limit: ifGiven(integer(1, 9)) },
    })
    class LimitedCm extends PlainCm {}
    const limited = pluginOf<'cm', { readonly limit?: number }>(LimitedCm);
    assert.throws(
      () => limited({ limit: 10 }),
      refuses('DAT_INVALID_PARAMETER', /^limited: limit is 10; it must be an integer from 1 to 9/),
    );
    const other = new FakeProvider();
    const ias = [
      await open({ cm: limited({ limit: 3 }) }),
      await openIa(other.plugin(), { modules: { cm: limited({ limit: 4 }) } }),
    ];
    assert.deepEqual(
      seen.map(({ given }) => given.at(-1)),
      [{ limit: 3 }, { limit: 4 }],
    );
    assert.ok(seen.every((each) => each instanceof LimitedCm));
    for (const ia of ias) await ia.close();
  });

  it('keep their options apart when one needs the other', async () => {
    const given: unknown[] = [];
    @plugin({ name: 'below', kind: 'mad', sdkVersion: SDK })
    class BelowMad extends TracedMad {
      constructor(@inject(MAD) inner: MadModule, @inject(OPTIONS) options: unknown) {
        super(inner);
        given.push(options);
      }
    }
    const below = pluginOf<'mad', { readonly depth: number }>(BelowMad);
    const above = pluginOf<'cm', { readonly limit: number }>(PlainCm);
    const ia = await open({ cm: above({ limit: 1 }), mad: below({ depth: 2 }) });
    assert.deepEqual([given, seen[0]?.given.at(-1)], [[{ depth: 2 }], { limit: 1 }]);
    await ia.close();
  });

  it('end in order: the wrapper before the wrapped, CM, then MAD, then device', async () => {
    const ia = await open({ cm: PlainCm, mad: TracedMad });
    assert.deepEqual(log, ['TracedMad', 'PlainCm']);
    await ia.close();
    assert.deepEqual(log.slice(2), ['PlainCm closes', 'TracedMad closes']);
    assert.deepEqual(fake.device.ended, ['cm', 'mad', 'device']);
  });

  it('are wrapped as others are: by decorators, and by each other', async () => {
    const calls: string[] = [];
    const decorated: ConfiguredModule<'cm'> = decorateModule(
      pluginOf<'cm'>(PlainCm)(),
      (inner) => ({
        listen: (options) => {
          calls.push('decorated');
          return inner.listen(options);
        },
      }),
    );
    @plugin({ name: 'outer', kind: 'cm', sdkVersion: SDK })
    class OuterCm extends OverCm {
      constructor(@inject(CM) inner: CmModule) {
        super(inner);
      }
      override listen(options: CmListenOptions): CmListener {
        calls.push('outer');
        return super.listen(options);
      }
    }
    const provider = withModules(fake.plugin(), decorated);
    const ia = await openIa(provider, { modules: { cm: OuterCm } });
    ia.createPsp({ connQual: 7 });
    assert.deepEqual(calls, ['outer', 'decorated']);
    await ia.close();
    assert.deepEqual(fake.device.ended, ['cm', 'mad', 'device']);
  });

  it('are registered by name, and listed', async () => {
    const registry = createRegistry({ plugins: [fake.plugin()] });
    registry.register(PlainCm, 'ours');
    const [entry] = registry.list('cm');
    assert.deepEqual([entry?.name, entry?.meta.name], ['ours', 'plain']);
    assert.deepEqual(entry?.meta.requires, ['mad']);
    await (await registry.openIa('fake', { modules: { cm: 'ours' } })).close();
    assert.equal(seen.length, 1);
  });

  it('are refused when a need is missing, by a sentence that names both sides', async () => {
    @plugin({ name: 'needy', kind: 'cm', sdkVersion: SDK })
    class NeedyCm extends OverCm {
      constructor(
        @inject(CM) inner: CmModule,
        @inject(XRC) readonly xrc: XrcModule,
      ) {
        super(inner);
      }
    }
    const text = /cm plugin "needy" requires "xrc", which none provides: provider plugin "fake" /;
    await assert.rejects(open({ cm: NeedyCm }), refuses('DAT_MODEL_NOT_SUPPORTED', text));
    assert.equal(fake.opened, 0);

    @plugin({ name: 'over', kind: 'xrc', sdkVersion: SDK })
    class OverXrc implements XrcModule {
      constructor(@inject(XRC) private readonly inner: XrcModule) {}
      openDomain: XrcModule['openDomain'] = (...values) => this.inner.openDomain(...values);
      release: XrcModule['release'] = (consumer) => this.inner.release(consumer);
      close = (): Promise<void> => this.inner.close();
    }
    const nothing = /xrc plugin "over" wraps dapl:xrc, and provider plugin "fake" has none to/;
    await assert.rejects(open({ xrc: OverXrc }), refuses('DAT_MODEL_NOT_SUPPORTED', nothing));
    assert.equal(fake.device.closed, 1);
  });

  it('are refused in a circle, by a sentence that names it', async () => {
    @plugin({ name: 'yours', kind: 'mad', sdkVersion: SDK })
    class YourMad extends TracedMad {
      constructor(
        @inject(MAD) inner: MadModule,
        @inject(CM) readonly cm: CmModule,
      ) {
        super(inner);
      }
    }
    const text =
      /would be made of itself: cm plugin "plain" needs .* needs mad plugin "yours" needs cm/;
    const opening = open({ cm: PlainCm, mad: YourMad });
    await assert.rejects(opening, refuses('DAT_MODEL_NOT_SUPPORTED', text));
    assert.deepEqual(log, [], 'none was created');
  });

  it('are refused when written for another SDK, by a sentence that names both', async () => {
    for (const [sdkVersion, message] of [
      ['9.0', /cm plugin "old" was written for SDK 9\.0, and this is SDK \d\.\d: other majors/],
      ['2.99', /cm plugin "old" was written for SDK 2\.99, and this is SDK 2\.\d, which lacks/],
    ] as const) {
      @plugin({ name: 'old', kind: 'cm', sdkVersion })
      class OldCm extends PlainCm {}
      await assert.rejects(open({ cm: OldCm }), refuses('DAT_PROVIDER_NOT_FOUND', message));
    }
    assert.equal(fake.opened, 0);
  });

  it('fail as others do: errors keep their code through what needs them', async () => {
    @plugin({ name: 'broken', kind: 'mad', sdkVersion: SDK })
    class BrokenMad extends TracedMad {
      constructor(@inject(MAD) inner: MadModule) {
        super(inner);
        throw new SpiError('EACCES', 'no right to QP1');
      }
    }
    const text =
      /^DatError: openIa: mad plugin "broken": no right to QP1 \[DAT_PRIVILEGES_VIOLATION\]/;
    await assert.rejects(open({ cm: PlainCm, mad: BrokenMad }), text);
    assert.deepEqual(fake.device.ended, ['mad', 'device'], 'what was created is closed');
  });

  it('are refused where @plugin or @inject is missing or in the wrong place', async () => {
    class Bare extends PlainCm {}
    await assert.rejects(
      open({ cm: Bare }),
      refuses('DAT_INVALID_PARAMETER', /Bare is not a configured plugin \(put @plugin above the/),
    );
    assert.throws(() => pluginOf<'cm'>(Bare), /^TypeError: Bare has no @plugin above it$/);
    const decorate = plugin({ name: 'half', kind: 'cm', sdkVersion: SDK });
    class Half extends OverCm {
      constructor(
        @inject(CM) inner: CmModule,
        readonly mad: MadModule,
      ) {
        super(inner);
      }
    }
    const text =
      /^TypeError: plugin "half": parameter 2 of the constructor of Half has no @inject$/;
    assert.throws(() => decorate(Half), text);
    const odd: unknown = { name: 'Odd', kind: 'cm', sdkVersion: SDK };
    assert.throws(
      () => plugin(odd as never),
      /^TypeError: plugin "Odd": name is "Odd"; it must be/,
    );
    assert.throws(() => plugin(undefined as never), TypeError);
    assert.throws(
      () => inject(undefined as never),
      /inject: what is injected is undefined; it must/,
    );
    assert.throws(() => inject(optional(1 as never)), /inject: optional is 1; it must be a token/);
    assert.throws(
      () => inject({ mad: 1 as never }),
      /inject: inject\.mad is 1; it must be a token/,
    );
    const target = {} as never;
    assert.throws(() => inject(CM)(target, undefined, 0 as never), /it must be a class: it is for/);
  });

  it('have parameters of the types of their tokens', () => {
    class Typed {
      constructor(
        @inject(MAD) readonly mad: MadModule,
        // @ts-expect-error another type
        @inject(MAD) readonly cm: CmModule,
        // @ts-expect-error there may be none
        @inject(optional(XRC)) readonly xrc: XrcModule,
        // @ts-expect-error a member of another type
        @inject({ clock: MAD }) readonly deps: { readonly clock: Clock },
      ) {}
    }
    // @ts-expect-error a class of another kind
    const wrong = (): void => plugin({ name: 'x', kind: 'mad', sdkVersion: SDK })(PlainCm);
    assert.equal(typeof wrong, typeof Typed);
  });
});
