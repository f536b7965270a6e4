/** Wraps a provider's parts, without writing a plugin for it. */
import { checkOptions, FUNCTION, optional, TEXT } from '../checks/index.js';
import { refusing } from '../errors/consumer-errors.js';
import {
  type ConfiguredModule,
  type ConfiguredProvider,
  definePlugin,
  MODULE_TOKENS,
  type ModuleKind,
  type ModuleTypes,
  withModules,
} from '../plugin/define-plugin.js';
import type { Logger } from '../plugin/logger.js';
import type { Clock } from '../time/clock.js';
import type { Timers } from '../time/timers.js';
import { CLOCK, LOGGER, TIMERS, type Token } from '../plugin/tokens.js';
import { over, type Over } from './over.js';

/** Services of every device, for decorators. */
export interface DecoratorContext {
  readonly clock: Clock;
  readonly logger: Logger;
}

/** As above, for wrappers above the packet port. */
export interface TimedContext extends DecoratorContext {
  /** Run by the device, after its own work: a wrapper may defer work to it. */
  readonly timers: Timers;
}

/**
 * Returns overrides for the members of a part; others are the part's own. It is called once for
 * each device. A `close` of its own must close the inner one too.
 */
export type Decorator<T, Context = TimedContext> = (inner: T, context: Context) => Over<T>;

/** A port has no timers: those of a device may run on the wrapper of its port. */
export type Decorators = {
  readonly [K in ModuleKind]?: Decorator<
    ModuleTypes[K],
    K extends 'port' ? DecoratorContext : TimedContext
  >;
};

export interface DecorateOptions {
  /** Name in errors: lower-case letters, digits and dashes; default `decorator`. */
  readonly name?: string;
}

/** Innermost first: each gets the one beneath it. */
const KINDS = ['port', 'device', 'mad', 'xrc', 'cm'] as const satisfies readonly ModuleKind[];
const DECORATORS = {
  port: optional(FUNCTION),
  device: optional(FUNCTION),
  mad: optional(FUNCTION),
  xrc: optional(FUNCTION),
  cm: optional(FUNCTION),
};

/**
 * The provider with members of its parts wrapped: of its CM, MAD or XRC module, its device or its
 * packet port, or of their present wrappers. An open device with a decorated provider can be opened
 * again with the same object; another one is DAT_INVALID_STATE.
 *
 *     decorate(provider, {
 *       cm: (inner) => ({ connect: (options) => (count(), inner.connect(options)) }),
 *     });
 *
 * @throws DatError DAT_INVALID_PARAMETER for another kind of part, or what is no function; openIa
 * DAT_MODEL_NOT_SUPPORTED for a `mad` or `xrc` that the provider has not. A `port` over a provider
 * without a packet port does nothing.
 */
export function decorate(
  provider: ConfiguredProvider,
  decorators: Decorators,
  options: DecorateOptions = {},
): ConfiguredProvider {
  const refuse = refusing('decorate');
  checkOptions(decorators, DECORATORS, refuse);
  checkOptions(options, { name: optional(TEXT) }, refuse);
  const { name = 'decorator' } = options;
  const modules = KINDS.flatMap((kind) => {
    const decorator = decorators[kind] as Decorator<ModuleTypes[typeof kind]> | undefined;
    return decorator === undefined ? [] : [layer(name, kind, decorator)];
  });
  return withModules(provider, ...modules);
}

/** One wrapper as a module for `withModules` and `openIa`. */
function layer<K extends ModuleKind>(
  name: string,
  kind: K,
  decorator: Decorator<ModuleTypes[K]>,
): ConfiguredModule {
  const inner = MODULE_TOKENS[kind] as Token<ModuleTypes[K]>;
  const meta = { name, kind, sdkVersion: '2.0', requires: [], provides: [] } as const;
  const timers = kind === 'port' ? {} : { timers: TIMERS };
  const inject = { inner, clock: CLOCK, logger: LOGGER, ...timers };
  const plugin = definePlugin<ModuleKind, typeof inject, unknown>(
    { ...meta, inject },
    ({ inner: part, ...context }) =>
      over<ModuleTypes[K]>(part, decorator(part, context as TimedContext)),
  );
  return plugin();
}

/**
 * A module with members wrapped, to replace the provider's own: `openIa(provider, { modules: { cm:
 * decorateModule(cm({}), wrapper) } })`.
 */
export function decorateModule<K extends ModuleKind>(
  module: ConfiguredModule<K>,
  decorator: (inner: ModuleTypes[K]) => Over<ModuleTypes[K]>,
): ConfiguredModule<K> {
  const made = (create: () => unknown): ModuleTypes[K] => {
    const inner = module.made(create);
    return over<ModuleTypes[K]>(inner, decorator(inner));
  };
  return Object.freeze({ ...module, made });
}
