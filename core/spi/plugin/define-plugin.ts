/**
 * Plugins: providers and modules declare their kind, the SDK version they need, and the
 * capabilities that they require and provide. All of it is checked when they are registered, before
 * anything opens.
 */
import { DatError } from '../../errors/dat/dat-error.js';
import {
  checkOptions,
  checkValue,
  checkValues,
  FUNCTION,
  type Kind,
  type Kinds,
  kindOf,
  mustBe,
  OBJECT,
  oneOf,
  type Refuse,
  show,
} from '../checks/index.js';
import type { CmModule } from '../modules/cm.js';
import { consumerCall, isSpiError, refusing } from '../errors/consumer-errors.js';
import type { Device } from '../device/device.js';
import {
  checkInject,
  type ClassPart,
  type Inject,
  type Injected,
  type Parameter,
  parametersOf,
  type Part,
  type PartClass,
  needsOf,
  type Registrar,
} from './injection.js';
import type { Logger } from './logger.js';
import type { MadModule } from '../modules/mad.js';
import type { PacketPort } from '../port/packet-port.js';
import { SpiError } from '../errors/spi-error.js';
import { CM, DEVICE, MAD, PACKET_PORT, type Token, XRC } from './tokens.js';
import type { XrcModule } from '../modules/xrc.js';

/** Version of this SDK: a plugin for another major one is refused (docs/versions.md). */
export const SDK_VERSION = '2.0.0';

const BRAND = Symbol.for('dapl:plugin');

/** The type of a module, by kind. */
export interface ModuleTypes {
  cm: CmModule;
  mad: MadModule;
  xrc: XrcModule;
  /** Wraps a provider's device, which only a provider creates. */
  device: Device;
  /** Wraps the packet port of a provider that has one. */
  port: PacketPort;
}

export type ModuleKind = keyof ModuleTypes;
export type PluginKind = ModuleKind | 'provider';

/** Token of a module of each kind in a device. */
export const MODULE_TOKENS: { readonly [K in ModuleKind]: Token<ModuleTypes[K]> } = {
  cm: CM,
  mad: MAD,
  xrc: XRC,
  device: DEVICE,
  port: PACKET_PORT,
};

export interface PluginMeta<K extends PluginKind = PluginKind> {
  /** Lower-case letters, digits and dashes; unique among the registered plugins of its kind. */
  readonly name: string;
  readonly kind: K;
  /** The SDK version that it needs at least, `major.minor`: same major, a minor not above ours. */
  readonly sdkVersion: string;
  /**
   * Capabilities that another plugin or the provider must provide: those of `CAPABILITIES`, or the
   * author's own, with a prefix: "acme:trace". The protocol modules that it injects are added
   * automatically.
   */
  readonly requires: readonly string[];
  readonly provides: readonly string[];
}

/** Capabilities that plugins may require and provide: what devices can do, and modules. */
export const CAPABILITIES = [
  'rc',
  'uc',
  'ud',
  'atomic',
  'send-with-invalidate',
  'shared-receive-queue',
  'memory-window',
  'multicast',
  'mad',
  'cm',
  'xrc',
  'device',
  'port',
] as const;

/** Metadata of a module. */
export interface ModuleMeta<K extends ModuleKind, I extends Inject> extends PluginMeta<K> {
  /**
   * Its dependencies. Its own token stands for the module that it wraps: the provider's, or another
   * wrapper. It owns that module, and its `close` closes it.
   */
  readonly inject: I;
}

/** An adapter ready to be opened: provider plugins make one from the user's options. */
export interface ProviderInstance {
  /** Two instances with the same key share one device of the process. */
  readonly deviceKey: string;
  /**
   * Opens the device and binds CLOCK, TIMERS, RANDOM, SCHEDULER, PROCESS_HOLD, DEVICE and the
   * modules; LOGGER is bound. A provider that has a PACKET_PORT binds it, and creates its device
   * with the injected one. On failure nothing stays open.
   * @throws SpiError
   */
  open(registrar: Registrar, logger: Logger): Promise<void>;
  /**
   * Tells whether this adapter and another one can be alternate paths to the same peers
   * (dat_registry_providers_related). Absent: unknown, unless both are one device.
   */
  relatedTo?(other: ProviderInstance): boolean | undefined;
}

/** A plugin: call it with its options, and register or open the result. */
export interface Plugin<K extends PluginKind = PluginKind, Options = unknown> {
  /**
   * @throws DatError DAT_INVALID_PARAMETER, which names the plugin, the option, its value and what
   * it may be
   */
  (
    ...options: undefined extends Options ? [options?: Options] : [options: Options]
  ): ConfiguredPlugin<K>;
  readonly meta: PluginMeta<K>;
}

/** Kinds of its options: other names and values are refused before anything else. */
interface WithOptions<Options> {
  readonly options?: NoInfer<Kinds<NonNullable<Options>>>;
}

export interface ConfiguredProvider {
  readonly meta: PluginMeta<'provider'>;
  readonly instance: ProviderInstance;
  /** Modules that wrap or replace the provider's own, innermost first. */
  readonly modules: readonly ConfiguredModule[];
}

/** A module and its options: a function of its dependencies, or a class. */
export type ConfiguredModule<K extends ModuleKind = ModuleKind> = (
  Part<ModuleTypes[K]> | ClassPart<ModuleTypes[K]>
) & {
  readonly meta: PluginMeta<K>;
  /** Runs what creates it and checks the result: errors name the plugin. */
  readonly made: (create: () => unknown) => ModuleTypes[K];
};

/** A class that is a module, with `@plugin` above it. */
export type ModuleClass<K extends ModuleKind = ModuleKind> = PartClass<ModuleTypes[K]>;

export type ConfiguredPlugin<K extends PluginKind = PluginKind> = K extends ModuleKind
  ? ConfiguredModule<K>
  : ConfiguredProvider;

/**
 * Defines a plugin. A provider is created from its options. A module is created from its
 * dependencies and its options, once for each device. The result of `create` is checked
 * immediately: a provider's instance when the plugin is called, a module when its device opens.
 * @throws TypeError when the metadata is malformed: the message names the field and its value
 */
export function definePlugin<Options>(
  meta: PluginMeta<'provider'> & WithOptions<Options>,
  create: (options: Options) => ProviderInstance,
): Plugin<'provider', Options>;
export function definePlugin<K extends ModuleKind, const I extends Inject, Options>(
  meta: ModuleMeta<K, I> & WithOptions<Options>,
  create: (deps: Injected<I>, options: Options) => ModuleTypes[K],
): Plugin<K, Options>;
export function definePlugin(
  given: PluginMeta & WithOptions<object> & { readonly inject?: Inject },
  create: (...values: never[]) => unknown,
): (options: unknown) => unknown {
  checkValue('meta', given, OBJECT, ofDefinition);
  checkMeta(given);
  checkValue('create', create, FUNCTION, ofDefinition);
  const { inject, ...rest } = given;
  const call = create as (...values: unknown[]) => unknown;
  if (inject === undefined) {
    return configurable(rest, [], (meta, options) => ({
      instance: configured(meta, () => call(options)),
      modules: [],
    }));
  }
  const needs = needsOf({ inject, make: call });
  return configurable(rest, needs, (meta, options) => ({
    inject,
    make: (deps: unknown) => call(deps, options),
    made: (run: () => unknown) => made(meta, run),
  }));
}

/** Metadata of a class that is a module. */
export interface ClassMeta<K extends ModuleKind> {
  readonly name: string;
  readonly kind: K;
  readonly sdkVersion: string;
  /** As of `PluginMeta`; default none. */
  readonly requires?: readonly string[];
  /** As of `PluginMeta`; default its kind. */
  readonly provides?: readonly string[];
  /** Kinds of its options, which a parameter with `@inject(OPTIONS)` is given. */
  readonly options?: Readonly<Record<string, Kind>>;
}

const PLUGIN = Symbol.for('dapl:plugin-of');
/** Modules of classes that are used without options: one object for each class. */
const BY_CLASS = new WeakMap<object, ConfiguredModule>();

/**
 * Makes a module of a class: `openIa(provider, { modules: { cm: MyCm } })`. Each device creates an
 * instance of it, and gives its constructor what `@inject` says.
 *
 *     @plugin({ name: 'mine', kind: 'cm', sdkVersion: '2.0' })
 *     class MyCm implements CmModule {
 *       constructor(@inject(MAD) private readonly mad: MadModule) {}
 *     }
 *
 * @throws TypeError when the metadata is malformed, or a parameter has no `@inject`
 */
export function plugin<K extends ModuleKind>(given: ClassMeta<K>): (Class: ModuleClass<K>) => void {
  checkValue('meta', given, OBJECT, ofDefinition);
  const rest = { requires: [], provides: [given.kind], ...given };
  checkMeta({ ...rest, inject: {} });
  return (Class) => {
    checkParameters(given.name, Class);
    const needs = needsOf({ useClass: Class });
    const configure = configurable(rest, needs, (meta, options) => ({
      useClass: Class,
      options,
      made: (run: () => unknown) => made(meta, run),
    }));
    Reflect.defineMetadata(PLUGIN, configure, Class);
  };
}

/**
 * The plugin of a class with `@plugin`, for modules with options: `pluginOf(MyCm)({ limit: 4 })`.
 * @throws TypeError for another class
 */
export function pluginOf<K extends ModuleKind, Options = undefined>(
  Class: ModuleClass<K>,
): Plugin<K, Options> {
  const found = Reflect.getOwnMetadata(PLUGIN, Class) as Plugin<K, Options> | undefined;
  if (found === undefined) throw new TypeError(`${Class.name} has no @plugin above it`);
  return found;
}

function checkParameters(name: string, Class: ModuleClass): void {
  const parameters = parametersOf(Class);
  const types = Reflect.getMetadata('design:paramtypes', Class) as readonly unknown[] | undefined;
  const count = Math.max(Class.length, parameters.length, types?.length ?? 0);
  for (let index = 0; index < count; index++) {
    if (parameters[index] !== undefined) continue;
    const where = `parameter ${index + 1} of the constructor of ${Class.name}`;
    throw new TypeError(`plugin ${show(name)}: ${where} has no @inject`);
  }
}

/** A class with `@plugin` as a module without options, the same one each time; else the value. */
export function configuredPlugin(value: unknown): unknown {
  if (typeof value !== 'function' || !Reflect.hasOwnMetadata(PLUGIN, value)) return value;
  const module = BY_CLASS.get(value) ?? pluginOf(value as ModuleClass)();
  BY_CLASS.set(value, module);
  return module;
}

/** The function that checks options and makes the plugin of them. */
function configurable(
  given: PluginMeta & WithOptions<object>,
  needs: readonly Parameter[],
  what: (meta: PluginMeta, options: unknown) => object,
): (options: unknown) => unknown {
  const { options: table, ...rest } = given;
  const meta = Object.freeze({ ...rest, requires: requirementsOf(given, needs) });
  const configure = (options: unknown): unknown => {
    // Without any options, the error names the first required one.
    if (table !== undefined)
      checkOptions(options === undefined ? {} : (options as object), table, refusing(meta.name));
    return Object.freeze({ [BRAND]: true, meta, ...what(meta, options) });
  };
  return Object.assign(configure, { meta });
}

/** Runs a provider's function on its options. */
function configured(meta: PluginMeta, run: () => unknown): unknown {
  let instance: unknown;
  try {
    instance = consumerCall(meta.name, run);
  } catch (error) {
    if (DatError.isDatError(error)) throw error;
    throw failed(meta, meta.name, error);
  }
  const { deviceKey, open } = (instance ?? {}) as Partial<ProviderInstance>;
  const isInstance =
    typeof deviceKey === 'string' && deviceKey !== '' && typeof open === 'function';
  if (!isInstance) throw nothingOf(meta, meta.name, instance, INSTANCE_TEXT);
  return instance;
}

/** Creates a module for a device. */
function made(meta: PluginMeta, run: () => unknown): unknown {
  let module: unknown;
  try {
    module = run();
  } catch (error) {
    if (DatError.isDatError(error)) throw error;
    if (!isSpiError(error)) throw failed(meta, OPENING, error);
    throw new SpiError(error.code, `${titleOf(meta)}: ${error.message}`, { cause: error });
  }
  const members = MEMBERS[meta.kind as ModuleKind];
  const has = (name: string): boolean =>
    typeof (module as Readonly<Record<string, unknown>>)[name] === 'function';
  const isModule = typeof module === 'object' && module !== null && members.every(has);
  if (!isModule) throw nothingOf(meta, OPENING, module, `an object with ${members.join(', ')}`);
  return module;
}

const OPENING = 'openIa';
const INSTANCE_TEXT = 'an object with deviceKey (a string that is not empty) and open';
/** Members that every module of a kind has. */
const MEMBERS: Readonly<Record<ModuleKind, readonly string[]>> = {
  cm: ['connect', 'listen', 'close'],
  mad: ['registerAgent', 'close'],
  xrc: ['openDomain', 'release', 'close'],
  device: ['createQueuePair', 'createCompletionQueue', 'close'],
  port: ['receive', 'place', 'send', 'close'],
};

function nothingOf(
  meta: PluginMeta,
  operation: string,
  value: unknown,
  expected: string,
): DatError {
  const message = `${titleOf(meta)} made ${show(value)}; it must make ${expected}`;
  const hint = 'its author must mend it: the function given to definePlugin returns it';
  return new DatError('DAT_INTERNAL_ERROR', { operation, message, hint, value });
}

function failed(meta: PluginMeta, operation: string, cause: unknown): DatError {
  const text = cause instanceof Error ? cause.message : String(cause);
  const message = `${titleOf(meta)} failed: ${text}`;
  return new DatError('DAT_INTERNAL_ERROR', { operation, message, cause });
}

/** `cm plugin "rdma-cm"`. */
export function titleOf(meta: PluginMeta): string {
  return `${meta.kind} plugin "${meta.name}"`;
}

/**
 * The provider with modules of its devices replaced or wrapped, one over the other, innermost
 * first. Modules given to `openIa` wrap them.
 * @throws DatError DAT_INVALID_PARAMETER for what is no configured provider, or module
 */
export function withModules(
  provider: ConfiguredProvider,
  ...modules: readonly (ConfiguredModule | ModuleClass)[]
): ConfiguredProvider {
  const refuse = refusing('withModules');
  checkValue('the provider', provider, PROVIDER, refuse);
  const added = modules.map((given) => {
    const module = configuredPlugin(given);
    checkValue('one of the modules', module, MODULE, refuse);
    return module;
  });
  return Object.freeze({ ...provider, modules: [...provider.modules, ...added] });
}

/** True for the result of a plugin of this SDK (any copy of it). */
export function isConfiguredPlugin(value: unknown): value is ConfiguredPlugin {
  return typeof value === 'object' && value !== null && BRAND in value;
}

/** A provider and its options. */
export const PROVIDER = kindOf<ConfiguredProvider>(
  'a configured provider, as mock({ fabric, address }) is',
  (value) => isConfiguredPlugin(value) && value.meta.kind === 'provider',
);
const MODULE = kindOf<ConfiguredModule>(
  'a configured module, as cm({}) is, or a class with @plugin',
  (value) => isConfiguredPlugin(value) && value.meta.kind !== 'provider',
);

const KINDS: readonly string[] = ['provider', ...Object.keys(MODULE_TOKENS)];

/** Modules whose kinds are capabilities. Every device has a device; a port is a provider's. */
const PROTOCOLS = ['cm', 'mad', 'xrc'] as const;

function requirementsOf(meta: PluginMeta, needs: readonly Parameter[]): readonly string[] {
  const injected = needs
    .filter(({ isRequired }) => isRequired)
    .map(({ token }) => PROTOCOLS.find((kind) => MODULE_TOKENS[kind] === token))
    .filter((kind) => kind !== undefined && kind !== meta.kind);
  return [...new Set([...meta.requires, ...(injected as string[])])];
}

const CAPABILITY: Kind<string> = {
  ...oneOf<string>(CAPABILITIES),
  expected: `one of ${CAPABILITIES.join(', ')}, or one of your own with a prefix, as "acme:trace"`,
  accepts: (name): name is string =>
    (CAPABILITIES as readonly unknown[]).includes(name) ||
    (typeof name === 'string' && /^[a-z][a-z0-9-]*:[a-z][a-z0-9-]*$/.test(name)),
};
const CAPABILITY_NAMES = kindOf<readonly string[]>(
  'a list of capability names',
  (list) => Array.isArray(list) && list.every((item) => typeof item === 'string' && item !== ''),
);
const META = {
  name: matching(/^[a-z][a-z0-9-]*$/, 'lower-case letters, digits and dashes'),
  kind: oneOf(KINDS),
  sdkVersion: matching(/^\d+\.\d+$/, '"major.minor"'),
  requires: CAPABILITY_NAMES,
  provides: CAPABILITY_NAMES,
};
const NO_INJECT = kindOf<undefined>(
  'left out: a provider binds what it has, and only modules are injected into',
  (inject) => inject === undefined,
);
const INJECT = kindOf<object>(
  'tokens by name',
  (inject) => typeof inject === 'object' && inject !== null,
);

function matching(pattern: RegExp, expected: string): Kind<string> {
  return kindOf(expected, (text) => typeof text === 'string' && pattern.test(text));
}

const ofDefinition: Refuse = (name, value, expected) =>
  new TypeError(`definePlugin: ${mustBe(name, value, expected)}`);

function checkMeta(meta: PluginMeta & { readonly inject?: unknown }): void {
  const refuse: Refuse = (name, value, expected) =>
    new TypeError(`plugin ${show(meta.name)}: ${mustBe(name, value, expected)}`);
  checkValues<PluginMeta>(meta, META, refuse);
  for (const capability of [...meta.requires, ...meta.provides]) {
    checkValue('a capability', capability, CAPABILITY, refuse);
  }
  const { kind, inject } = meta;
  const expected: Kind = kind === 'provider' ? NO_INJECT : INJECT;
  checkValue('inject', inject, expected, refuse);
  checkInject((inject ?? {}) as Inject, refuse);
}

/** The reason why this SDK refuses the plugin, with advice; undefined if it accepts it. */
export function sdkMismatch(
  meta: PluginMeta,
): { readonly message: string; readonly hint: string } | undefined {
  const [major = 0, minor = 0] = meta.sdkVersion.split('.').map(Number);
  const [ourMajor = 0, ourMinor = 0] = SDK_VERSION.split('.').map(Number);
  if (major === ourMajor && minor <= ourMinor) return undefined;
  const ours = `this is SDK ${ourMajor}.${ourMinor}`;
  const title = `${titleOf(meta)} was written for SDK ${meta.sdkVersion}`;
  if (major === ourMajor) {
    const most = `SDK ${ourMajor}.${ourMinor}`;
    return {
      message: `${title}, and ${ours}, which lacks what it may use of ${meta.sdkVersion}`,
      hint: `update dapl, or install a version of the plugin for ${most} or lower`,
    };
  }
  return {
    message: `${title}, and ${ours}: other majors do not fit`,
    hint: `install a version of the plugin for SDK ${ourMajor}, or a dapl with SDK ${major}`,
  };
}
