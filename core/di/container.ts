/**
 * The container of a device, and of each interface adapter on it. tsyringe creates the parts and
 * resolves their dependencies. Here is what it cannot do: several levels of one token (the
 * provider's binding, and layers that wrap or replace it), checks before anything is created, and
 * errors that keep their type. Plugins see no container, so a second copy of tsyringe in an
 * application cannot matter.
 */
import 'reflect-metadata';
import {
  container as root,
  type DependencyContainer,
  inject,
  injectable,
  instanceCachingFactory,
} from 'tsyringe';
import { DatError } from '../errors/index.js';
import {
  type ClassPart,
  type Inject,
  LOGGER,
  type Logger,
  OPTIONS,
  type Part,
  type PartClass,
  type PluginMeta,
  type Registrar,
  type Token,
} from '../spi/index.js';
import {
  configuredPlugin,
  needOf,
  needsOf,
  type Parameter,
  parametersOf,
} from '../spi/internal/index.js';
import { DeviceServices, IF_BOUND, TAKEN } from './device-services.js';

/** A part; `meta` and `made` are those of a module. */
type AnyPart = (Part<unknown> | ClassPart<unknown>) & {
  readonly meta?: PluginMeta;
  readonly made?: (create: () => unknown) => unknown;
};

/** A part that replaces the provider's own, or wraps it if it injects its own token. */
export interface Layer {
  readonly token: Token<unknown>;
  readonly part: AnyPart;
  /** Its name in errors: `cm plugin "trace"`. */
  readonly title: string;
}

/** One level of a token: the provider's binding, or a layer over it. */
interface Level extends Layer {
  /** Its key in the container. */
  readonly key: symbol;
  readonly needs: readonly Parameter[];
}

/** One device's container. */
export class DeviceContainer implements Registrar {
  private readonly container = root.createChildContainer();
  private readonly bases = new Map<Token<unknown>, Level>();
  /** Innermost first. */
  private readonly layers: readonly Level[];
  private readonly openings: Level[] = [];
  private readonly made = new Map<Level, unknown>();
  /** The first failure of the present creation: tsyringe throws a text about it. */
  private failure: unknown;

  /**
   * @param provider what errors call it
   * @param layers from below
   */
  constructor(
    logger: Logger,
    private readonly provider: string,
    layers: readonly Layer[] = [],
  ) {
    this.layers = layers.map(levelOf);
    this.bind(LOGGER, () => logger);
  }

  bind<T>(token: Token<T>, given: PartClass<T> | ClassPart<T> | Part<T> | (() => T)): void {
    const title = `${nameOf(token)} of ${this.provider}`;
    this.bases.set(token, levelOf({ token, part: partOf(given), title }));
  }

  onOpen(part: Part<void>): void {
    const title = `the opening of ${this.provider}`;
    this.openings.push(levelOf({ token: Symbol('open'), part, title }));
  }

  /**
   * Ends the binding: tells tsyringe of all parts, and checks that everything core takes can be
   * created, before anything is.
   * @throws DatError DAT_MODEL_NOT_SUPPORTED for a missing part, and for a cycle: the message names
   * the parts and their dependencies
   */
  seal(): void {
    for (const token of new Set([...this.bases.keys(), ...this.layers.map(({ token }) => token)])) {
      const levels = this.levelsOf(token);
      levels.forEach((level, i) => this.register(level, levels[i - 1]));
      if (!this.isHollow(token)) this.container.register(token, { useToken: levels.at(-1)!.key });
    }
    for (const level of this.openings) this.register(level);
    const wanted = [...TAKEN, ...IF_BOUND.filter((token) => this.top(token))];
    const roots = wanted.map((token) => this.top(token) ?? this.refuseMissing('core', token));
    checkGraph([...roots, ...this.openings], (level) => this.givenTo(level));
  }

  /** Creates the parts that the provider asked for at the end of the opening. */
  opened(): void {
    for (const level of this.openings) this.create(level.key);
  }

  has(token: Token<unknown>): boolean {
    return this.container.isRegistered(token);
  }

  /** @throws DatError DAT_MODEL_NOT_SUPPORTED when nothing is bound to it */
  resolve<T>(token: Token<T>): T {
    if (!this.has(token)) this.refuseMissing('core', token);
    return this.create(token) as T;
  }

  /** The outermost instance made for the token: the one to close. */
  madeOf<T>(token: Token<T>): T | undefined {
    const level = this.levelsOf(token).findLast((each) => this.made.has(each));
    return level && (this.made.get(level) as T);
  }

  /** The provider's own instance, without its wrappers. */
  ownOf<T>(token: Token<T>): T | undefined {
    const base = this.bases.get(token);
    return base && (this.create(base.key) as T);
  }

  /** The services that core uses, with a logger of the interface adapter's own. */
  servicesFor(logger: Logger): DeviceServices {
    const child = this.container.createChildContainer();
    child.register(LOGGER, { useValue: logger });
    return child.resolve(DeviceServices);
  }

  private create(key: Token<unknown>): unknown {
    this.failure = undefined;
    return this.container.resolve(key);
  }

  /**
   * A level has a container of its own, where its own token is the level beneath it, OPTIONS are
   * its own, and the logger of a module names it. It is created there, whoever needs it first.
   */
  private register(level: Level, beneath?: Level): void {
    const { key, token, part } = level;
    const scope = this.container.createChildContainer();
    scope.register(token, { useFactory: () => beneath && this.container.resolve(beneath.key) });
    const { name } = part.meta ?? {};
    if (name !== undefined) {
      const logger = (): Logger => this.container.resolve<Logger>(LOGGER).child({ module: name });
      scope.register(LOGGER, { useFactory: logger });
    }
    describe(part, key, scope);
    const create = (): unknown => scope.resolve(key);
    const useFactory = instanceCachingFactory(() => {
      try {
        const instance = part.made ? part.made(create) : create();
        this.made.set(level, instance);
        return instance;
      } catch (error) {
        throw (this.failure ??= error);
      }
    });
    this.container.register(key, { useFactory });
  }

  /** Innermost first. */
  private levelsOf(token: Token<unknown>): readonly Level[] {
    const base = this.bases.get(token);
    const layers = this.layers.filter((layer) => layer.token === token);
    return base === undefined ? layers : [base, ...layers];
  }

  private top(token: Token<unknown>): Level | undefined {
    return this.levelsOf(token).at(-1);
  }

  /** The levels that a level is given, for the check. */
  private givenTo(level: Level): Level[] {
    return level.needs.flatMap(({ token, isRequired }) => {
      const top = !isRequired && this.isHollow(token) ? undefined : this.top(token);
      const levels = this.levelsOf(token);
      const given = token === level.token ? levels[levels.indexOf(level) - 1] : top;
      return given ?? (isRequired ? this.refuseMissing(level, token) : []);
    });
  }

  /** True if the only binding is a wrapper with nothing to wrap. */
  private isHollow(token: Token<unknown>): boolean {
    const [lowest] = this.levelsOf(token);
    return lowest?.needs.some((need) => need.isRequired && need.token === token) ?? false;
  }

  /** @throws DatError DAT_MODEL_NOT_SUPPORTED */
  private refuseMissing(needing: Level | 'core', token: Token<unknown>): never {
    const name = nameOf(token);
    const title = needing === 'core' ? needing : needing.title;
    const isOwn = needing !== 'core' && needing.token === token;
    throw new DatError('DAT_MODEL_NOT_SUPPORTED', {
      operation: 'openIa',
      message: isOwn
        ? `${title} wraps ${name}, and ${this.provider} has none to be wrapped`
        : `${title} needs ${name}, and ${this.provider} has none`,
      value: name,
    });
  }
}

function levelOf(layer: Layer): Level {
  return { ...layer, key: Symbol(layer.title), needs: needsOf(layer.part) };
}

function partOf(given: PartClass<unknown> | AnyPart | (() => unknown)): AnyPart {
  const part = configuredPlugin(given) as typeof given;
  if (typeof part !== 'function') return part;
  const useClass = part as PartClass<unknown>;
  if (parametersOf(useClass).length > 0) return { useClass };
  return { inject: {}, make: given as () => unknown };
}

/** Tells tsyringe how a part is created. */
function describe(part: AnyPart, key: symbol, scope: DependencyContainer): void {
  if ('inject' in part) {
    const make = part.make as (deps: unknown) => unknown;
    scope.register(key, { useFactory: (from) => make(objectOf(part.inject, from)) });
    return;
  }
  const { useClass, options } = part;
  scope.register(OPTIONS, { useFactory: () => options });
  parametersOf(useClass).forEach((parameter, index) => {
    const { token, isRequired, members } = parameter!;
    inject(token, { isOptional: !isRequired })(useClass, undefined, index);
    if (members) scope.register(token, { useFactory: (from) => objectOf(members, from) });
  });
  injectable()(useClass);
  scope.register(key, { useClass });
}

/** The values of tokens, by their names. */
function objectOf(members: Inject, from: DependencyContainer): Record<string, unknown> {
  const entries = Object.entries(members).map(([name, spec]) => {
    const { token, isRequired } = needOf(spec);
    const isThere = isRequired || from.isRegistered(token, true);
    return [name, isThere ? from.resolve(token) : undefined] as const;
  });
  return Object.fromEntries(entries);
}

/**
 * @throws DatError DAT_MODEL_NOT_SUPPORTED that names the chain by which a level stands on itself;
 * whatever `givenTo` throws
 */
function checkGraph(roots: readonly Level[], givenTo: (level: Level) => readonly Level[]): void {
  const sound = new Set<Level>();
  const chain: Level[] = [];
  const visit = (level: Level): void => {
    if (sound.has(level)) return;
    const start = chain.indexOf(level);
    if (start >= 0) refuseCycle([...chain.slice(start), level]);
    chain.push(level);
    givenTo(level).forEach(visit);
    chain.pop();
    sound.add(level);
  };
  roots.forEach(visit);
}

function nameOf(token: Token<unknown>): string {
  return token.description ?? String(token);
}

function refuseCycle(chain: readonly Level[]): never {
  const names = chain.map(({ title }) => title);
  throw new DatError('DAT_MODEL_NOT_SUPPORTED', {
    operation: 'openIa',
    message: `a module would be made of itself: ${names.join(' needs ')}`,
    hint: 'one of them must do without the other',
    value: names,
  });
}
