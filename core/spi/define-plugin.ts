/**
 * Plugins: providers and modules say what they are, which SDK they were written for, what they need
 * and what they give. All of it is checked when they are registered, before anything opens.
 */
import {
  checkValue,
  checkValues,
  type Kind,
  kindOf,
  mustBe,
  oneOf,
  type Refuse,
  show,
} from './checks/index.js';
import type { CmModule } from './cm.js';
import type { Device } from './device.js';
import { type Inject, type Injected, needOf, type Part, type Registrar } from './injection.js';
import type { Logger } from './logger.js';
import type { MadModule } from './mad.js';
import type { PacketPort } from './packet-port.js';
import { CM, DEVICE, MAD, PACKET_PORT, type Token, XRC } from './tokens.js';
import type { XrcModule } from './xrc.js';

/** Version of this SDK: a plugin for another major one is refused. */
export const SDK_VERSION = '1.0.0';

const BRAND = Symbol.for('dapl:plugin');

/** What a module of each kind is. */
export interface ModuleTypes {
  cm: CmModule;
  mad: MadModule;
  xrc: XrcModule;
  /** Over a provider's device, which only a provider makes. */
  device: Device;
  /** Over the packet port of a provider that has one. */
  port: PacketPort;
}

export type ModuleKind = keyof ModuleTypes;
export type PluginKind = ModuleKind | 'provider';

/** Where a module of each kind stands in a device. */
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
  /** The SDK it needs at least, as `major.minor`: the same major, a minor not above ours. */
  readonly sdkVersion: string;
  /**
   * Capabilities that another plugin or the provider must give. The protocol modules that it
   * injects need not be named again: they are added.
   */
  readonly requires: readonly string[];
  readonly provides: readonly string[];
}

/** What a module says of itself. */
export interface ModuleMeta<K extends ModuleKind, I extends Inject> extends PluginMeta<K> {
  /**
   * What it is made of. Its own token stands for what would be there without it: so it wraps the
   * provider's module, or another wrapper. It owns that, and its `close` closes it.
   */
  readonly inject: I;
}

/** What opening a device takes: provider plugins make one of these from the user's options. */
export interface ProviderInstance {
  /** Two instances with the same key share one device of the process. */
  readonly deviceKey: string;
  /**
   * Opens the device and binds CLOCK, TIMERS, RANDOM, SCHEDULER, PROCESS_HOLD, DEVICE and the
   * modules; LOGGER is bound. A provider that has a PACKET_PORT binds it, and makes its device of
   * the one that it is given. On failure nothing stays open.
   * @throws SpiError
   */
  open(registrar: Registrar, logger: Logger): Promise<void>;
  /**
   * Whether this adapter and another one can be alternate paths to the same peers
   * (dat_registry_providers_related). Absent: unknown, unless both are one device.
   */
  relatedTo?(other: ProviderInstance): boolean | undefined;
}

/** A plugin is called with its options and gives what is registered or opened. */
export interface Plugin<K extends PluginKind = PluginKind, Options = unknown> {
  (options: Options): ConfiguredPlugin<K>;
  readonly meta: PluginMeta<K>;
}

export interface ConfiguredProvider {
  readonly meta: PluginMeta<'provider'>;
  readonly instance: ProviderInstance;
  /** What stands over its own modules, from below. */
  readonly modules: readonly ConfiguredModule[];
}

export interface ConfiguredModule<K extends ModuleKind = ModuleKind> extends Part<ModuleTypes[K]> {
  readonly meta: PluginMeta<K>;
}

export type ConfiguredPlugin<K extends PluginKind = PluginKind> = K extends ModuleKind
  ? ConfiguredModule<K>
  : ConfiguredProvider;

/**
 * A provider is made of its options. A module is made of what it injects and its options, once for
 * each device.
 * @throws TypeError when the metadata is malformed: the message names the field and its value
 */
export function definePlugin<Options>(
  meta: PluginMeta<'provider'>,
  create: (options: Options) => ProviderInstance,
): Plugin<'provider', Options>;
export function definePlugin<K extends ModuleKind, const I extends Inject, Options>(
  meta: ModuleMeta<K, I>,
  create: (deps: Injected<I>, options: Options) => ModuleTypes[K],
): Plugin<K, Options>;
export function definePlugin(
  given: PluginMeta & { readonly inject?: Inject },
  create: (...values: never[]) => unknown,
): (options: unknown) => unknown {
  checkMeta(given);
  const { inject, ...rest } = given;
  const meta = Object.freeze({ ...rest, requires: requirementsOf(given) });
  const call = create as (...values: unknown[]) => unknown;
  const configure = (options: unknown): unknown => {
    const what =
      inject === undefined
        ? { instance: call(options), modules: [] }
        : { inject, make: (deps: unknown) => call(deps, options) };
    return Object.freeze({ [BRAND]: true, meta, ...what });
  };
  return Object.assign(configure, { meta });
}

/**
 * The provider with modules of its devices replaced or wrapped, one over the other from below.
 * Modules given to `openIa` stand over them.
 * @throws TypeError for what is no configured module
 */
export function withModules(
  provider: ConfiguredProvider,
  ...modules: readonly ConfiguredModule[]
): ConfiguredProvider {
  for (const module of modules as readonly unknown[]) {
    if (isConfiguredPlugin(module) && module.meta.kind !== 'provider') continue;
    throw new TypeError(`withModules: ${show(module)} is not a configured module`);
  }
  return Object.freeze({ ...provider, modules: [...provider.modules, ...modules] });
}

/** True for what a plugin of this SDK (any copy of it) returned. */
export function isConfiguredPlugin(value: unknown): value is ConfiguredPlugin {
  return typeof value === 'object' && value !== null && BRAND in value;
}

const KINDS: readonly string[] = ['provider', ...Object.keys(MODULE_TOKENS)];

/** Modules whose kinds are capabilities; a device there always is, and a port is a provider's. */
const CAPABILITIES = ['cm', 'mad', 'xrc'] as const;

function requirementsOf(meta: PluginMeta & { readonly inject?: Inject }): readonly string[] {
  const injected = Object.values(meta.inject ?? {})
    .map(needOf)
    .filter(({ isRequired }) => isRequired)
    .map(({ token }) => CAPABILITIES.find((kind) => MODULE_TOKENS[kind] === token))
    .filter((kind) => kind !== undefined && kind !== meta.kind);
  return [...new Set([...meta.requires, ...(injected as string[])])];
}

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
const TOKEN = kindOf<symbol>('a token', (token) => typeof token === 'symbol');

function matching(pattern: RegExp, expected: string): Kind<string> {
  return kindOf(expected, (text) => typeof text === 'string' && pattern.test(text));
}

function checkMeta(meta: PluginMeta & { readonly inject?: unknown }): void {
  const refuse: Refuse = (name, value, expected) =>
    new TypeError(`plugin ${show(meta.name)}: ${mustBe(name, value, expected)}`);
  checkValues<PluginMeta>(meta, META, refuse);
  const { kind, inject } = meta;
  const expected: Kind = kind === 'provider' ? NO_INJECT : INJECT;
  checkValue('inject', inject, expected, refuse);
  for (const [name, spec] of Object.entries(inject ?? {})) {
    const token: unknown = (spec as { readonly optional?: unknown } | undefined)?.optional ?? spec;
    checkValue(`inject.${name}`, token, TOKEN, refuse);
  }
}

/** Why this SDK cannot take the plugin, or undefined if it can. */
export function sdkMismatch(meta: PluginMeta): string | undefined {
  const [major = 0, minor = 0] = meta.sdkVersion.split('.').map(Number);
  const [ourMajor = 0, ourMinor = 0] = SDK_VERSION.split('.').map(Number);
  if (major === ourMajor && minor <= ourMinor) return undefined;
  return (
    `${meta.kind} plugin ${show(meta.name)} was written for SDK ${meta.sdkVersion}; ` +
    `this is ${SDK_VERSION}. Install a version of it for SDK ${ourMajor}.`
  );
}
