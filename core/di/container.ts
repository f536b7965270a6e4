/**
 * The container of a device, and of each interface adapter on it. A token may have several levels:
 * the provider's binding, and layers that wrap or replace it. tsyringe creates each level on first
 * use, with its dependencies. Plugins see no container, so a second copy of tsyringe in an
 * application cannot matter.
 */
import 'reflect-metadata';
import { container as root, type DependencyContainer, instanceCachingFactory } from 'tsyringe';
import { DatError } from '../errors/index.js';
import {
  LOGGER,
  type Logger,
  needOf,
  type Part,
  type Registrar,
  type Token,
} from '../spi/index.js';
import { DeviceServices, IF_BOUND, TAKEN } from './device-services.js';

/** A part that replaces the provider's own, or wraps it if it injects its own token. */
export interface Layer {
  readonly token: Token<unknown>;
  readonly part: Part<unknown>;
  /** Its name in errors: `cm plugin "trace"`. */
  readonly title: string;
}

/** The levels of a token. */
interface Stack {
  /** The level that the provider bound. */
  base: Level | undefined;
  /** Innermost first. */
  readonly layers: Level[];
}

/** One device's container. */
export class DeviceContainer implements Registrar {
  private readonly container: DependencyContainer;
  private readonly stacks = new Map<symbol, Stack>();
  private readonly made = new Map<Level, unknown>();
  private readonly onOpened: Level[] = [];

  /**
   * @param provider what errors call it
   * @param layers from below
   */
  constructor(
    logger: Logger,
    private readonly provider: string,
    layers: readonly Layer[] = [],
  ) {
    this.container = root.createChildContainer();
    this.bind(LOGGER, () => logger);
    for (const layer of layers) this.stackOf(layer.token).layers.push(this.level(layer));
  }

  bind<T>(token: Token<T>, given: Part<T> | (() => T)): void {
    const part = typeof given === 'function' ? { inject: {}, make: given } : given;
    const title = `${nameOf(token)} of ${this.provider}`;
    this.stackOf(token).base = this.level({ token, part, title });
  }

  onOpen(part: Part<void>): void {
    const token = Symbol('open');
    this.onOpened.push(this.level({ token, part, title: `the opening of ${this.provider}` }));
  }

  /**
   * Checks that everything core takes can be created, before anything is.
   * @throws DatError DAT_MODEL_NOT_SUPPORTED for a missing part, and for a cycle: the message names
   * the parts and their dependencies
   */
  check(): void {
    const isThere = (token: Token<unknown>): boolean => this.stacks.has(token);
    const wanted = [...TAKEN, ...IF_BOUND.filter(isThere)];
    const roots = wanted.map(
      (token) => this.top(token) ?? refuseMissing('core', token, this.provider),
    );
    checkGraph([...roots, ...this.onOpened], (level) => this.needsOf(level));
  }

  /** Creates the parts that the provider asked for at the end of the opening. */
  opened(): void {
    for (const level of this.onOpened) this.instanceOf(level);
  }

  has(token: Token<unknown>): boolean {
    return this.top(token) !== undefined;
  }

  /** @throws DatError DAT_MODEL_NOT_SUPPORTED when nothing is bound to it */
  resolve<T>(token: Token<T>): T {
    return this.instanceOf(this.top(token) ?? refuseMissing('core', token, this.provider)) as T;
  }

  /** The outermost instance made for the token: the one to close. */
  madeOf<T>(token: Token<T>): T | undefined {
    const level = this.levelsOf(token).findLast((each) => this.made.has(each));
    return level && (this.made.get(level) as T);
  }

  /** The provider's own instance, without its wrappers. */
  ownOf<T>(token: Token<T>): T | undefined {
    const base = this.stacks.get(token)?.base;
    return base && (this.instanceOf(base) as T);
  }

  /** The services that core uses, with a logger of the interface adapter's own. */
  servicesFor(logger: Logger): DeviceServices {
    const child = this.container.createChildContainer();
    child.register(LOGGER, { useValue: logger });
    return child.resolve(DeviceServices);
  }

  private stackOf(token: Token<unknown>): Stack {
    let stack = this.stacks.get(token);
    if (stack === undefined) {
      stack = { base: undefined, layers: [] };
      this.stacks.set(token, stack);
      this.container.register(token, { useFactory: () => this.resolve(token) });
    }
    return stack;
  }

  /** Registers a level under a symbol of its own. */
  private level({ token, part, title }: Layer): Level {
    const level: Level = { key: Symbol(title), token, part, title };
    const make = part.make as (deps: Record<string, unknown>) => unknown;
    const useFactory = instanceCachingFactory(() => {
      const deps: Record<string, unknown> = {};
      for (const [name, beneath] of this.needsOf(level)) {
        deps[name] = beneath && this.instanceOf(beneath);
      }
      const instance = make(deps);
      this.made.set(level, instance);
      return instance;
    });
    this.container.register(level.key, { useFactory });
    return level;
  }

  private instanceOf(level: Level): unknown {
    return this.container.resolve(level.key);
  }

  /** Innermost first. */
  private levelsOf(token: Token<unknown>): readonly Level[] {
    const { base, layers = [] } = this.stacks.get(token) ?? {};
    return base === undefined ? layers : [base, ...layers];
  }

  private top(token: Token<unknown>): Level | undefined {
    return this.levelsOf(token).at(-1);
  }

  /** Dependencies of a level, each with the name that it is injected as. */
  private needsOf(level: Level): (readonly [string, Level | undefined])[] {
    return Object.entries(level.part.inject).map(([name, spec]) => {
      const { token, isRequired } = needOf(spec);
      const top = !isRequired && this.isHollow(token) ? undefined : this.top(token);
      const given = token === level.token ? this.beneath(level) : top;
      if (given === undefined && isRequired) refuseMissing(level, token, this.provider);
      return [name, given] as const;
    });
  }

  /** True if the only binding is a wrapper with nothing to wrap. */
  private isHollow(token: Token<unknown>): boolean {
    const [lowest] = this.levelsOf(token);
    return Object.values(lowest?.part.inject ?? {})
      .map(needOf)
      .some((need) => need.isRequired && need.token === token && !this.beneath(lowest!));
  }

  private beneath(level: Level): Level | undefined {
    const levels = this.levelsOf(level.token);
    return levels[levels.indexOf(level) - 1];
  }
}

// Dependencies of a device's parts: all must be bound, without cycles.

/** One level of a token: the provider's binding, or a layer over it. */
interface Level {
  /** Its key in the container. */
  readonly key: symbol;
  readonly token: Token<unknown>;
  readonly part: Part<unknown>;
  readonly title: string;
}

type Needs = (level: Level) => readonly (readonly [name: string, given: Level | undefined])[];

/**
 * @throws DatError DAT_MODEL_NOT_SUPPORTED that names the chain by which a level stands on itself;
 * whatever `needsOf` throws
 */
function checkGraph(roots: readonly Level[], needsOf: Needs): void {
  const sound = new Set<Level>();
  const chain: Level[] = [];
  const visit = (level: Level): void => {
    if (sound.has(level)) return;
    const start = chain.indexOf(level);
    if (start >= 0) refuseCycle([...chain.slice(start), level]);
    chain.push(level);
    for (const [, given] of needsOf(level)) if (given !== undefined) visit(given);
    chain.pop();
    sound.add(level);
  };
  for (const root of roots) visit(root);
}

/**
 * @param provider what errors call it
 * @throws DatError DAT_MODEL_NOT_SUPPORTED
 */
function refuseMissing(needing: Level | 'core', token: Token<unknown>, provider: string): never {
  const name = nameOf(token);
  const title = needing === 'core' ? needing : needing.title;
  const isOwn = needing !== 'core' && needing.token === token;
  throw new DatError('DAT_MODEL_NOT_SUPPORTED', {
    operation: 'openIa',
    message: isOwn
      ? `${title} wraps ${name}, and ${provider} has none to be wrapped`
      : `${title} needs ${name}, and ${provider} has none`,
    value: name,
  });
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
