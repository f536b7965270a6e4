/**
 * Plugins: providers and modules say what they are, which SDK they were written for, what they need
 * and what they give. All of it is checked when they are registered, before anything opens.
 */
import type { Registrar, Resolver } from './tokens.js';
import type { CmModule } from './cm.js';
import type { MadModule } from './mad.js';
import type { XrcModule } from './xrc.js';

/** Version of this SDK: a plugin for another major one is refused. */
export const SDK_VERSION = '1.0.0';

const BRAND = Symbol.for('dapl:plugin');

export type PluginKind = 'provider' | 'mad' | 'cm' | 'xrc';

export interface PluginMeta {
  /** Lower-case letters, digits and dashes; unique among the registered plugins of its kind. */
  readonly name: string;
  readonly kind: PluginKind;
  /** The SDK it needs at least, as `major.minor`: the same major, a minor not above ours. */
  readonly sdkVersion: string;
  /** Capabilities that another plugin or the provider must give (a module kind such as 'cm'). */
  readonly requires: readonly string[];
  readonly provides: readonly string[];
}

/** What opening a device takes: provider plugins make one of these from the user's options. */
export interface ProviderInstance {
  /** Two instances with the same key share one device of the process. */
  readonly deviceKey: string;
  /**
   * Opens the device and binds CLOCK, TIMERS, RANDOM, SCHEDULER, PROCESS_HOLD, DEVICE and the
   * modules. The container already holds LOGGER. On failure nothing stays open.
   * @throws SpiError
   */
  open(registrar: Registrar, resolver: Resolver): Promise<void>;
  /**
   * Whether this adapter and another one can be alternate paths to the same peers
   * (dat_registry_providers_related). Absent: unknown, unless both are one device.
   */
  relatedTo?(other: ProviderInstance): boolean | undefined;
}

export interface PluginInstances {
  provider: ProviderInstance;
  mad: (resolver: Resolver) => MadModule;
  cm: (resolver: Resolver) => CmModule;
  xrc: (resolver: Resolver) => XrcModule;
}

/** A plugin is called with its options and gives what is registered or opened. */
export interface Plugin<K extends PluginKind = PluginKind, Options = unknown> {
  (options: Options): ConfiguredPlugin<K>;
  readonly meta: PluginMeta & { readonly kind: K };
}

export interface ConfiguredPlugin<K extends PluginKind = PluginKind> {
  readonly meta: PluginMeta & { readonly kind: K };
  readonly instance: PluginInstances[K];
}

/**
 * @throws TypeError when the metadata is malformed: the message names the field and its value
 */
export function definePlugin<K extends PluginKind, Options>(
  meta: PluginMeta & { readonly kind: K },
  create: (options: Options) => PluginInstances[K],
): Plugin<K, Options> {
  checkMeta(meta);
  const frozen = Object.freeze({ ...meta });
  const plugin = (options: Options): ConfiguredPlugin<K> =>
    Object.freeze({ [BRAND]: true, meta: frozen, instance: create(options) });
  return Object.assign(plugin, { meta: frozen });
}

/** True for what a plugin of this SDK (any copy of it) returned. */
export function isConfiguredPlugin(value: unknown): value is ConfiguredPlugin {
  return typeof value === 'object' && value !== null && BRAND in value;
}

const KINDS: readonly string[] = ['provider', 'mad', 'cm', 'xrc'];

function checkMeta(meta: PluginMeta): void {
  const where = `plugin ${JSON.stringify(meta.name)}`;
  if (!/^[a-z][a-z0-9-]*$/.test(meta.name)) {
    throw new TypeError(`${where}: a name is lower-case letters, digits and dashes`);
  }
  if (!KINDS.includes(meta.kind)) {
    throw new TypeError(
      `${where}: kind ${JSON.stringify(meta.kind)} is none of ${KINDS.join(', ')}`,
    );
  }
  if (!/^\d+\.\d+$/.test(meta.sdkVersion)) {
    throw new TypeError(
      `${where}: sdkVersion ${JSON.stringify(meta.sdkVersion)} is not "major.minor"`,
    );
  }
  for (const field of ['requires', 'provides'] as const) {
    const list: unknown = meta[field];
    if (!Array.isArray(list) || list.some((item) => typeof item !== 'string' || item === '')) {
      throw new TypeError(`${where}: ${field} must be a list of capability names`);
    }
  }
}

/** Why this SDK cannot take the plugin, or undefined if it can. */
export function sdkMismatch(meta: PluginMeta): string | undefined {
  const [major = 0, minor = 0] = meta.sdkVersion.split('.').map(Number);
  const [ourMajor = 0, ourMinor = 0] = SDK_VERSION.split('.').map(Number);
  if (major === ourMajor && minor <= ourMinor) return undefined;
  return (
    `${meta.kind} plugin "${meta.name}" was written for SDK ${meta.sdkVersion}; ` +
    `this is ${SDK_VERSION}. Install a version of it for SDK ${ourMajor}.`
  );
}
