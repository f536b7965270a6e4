/**
 * The registry: plugins by name, and the way to an open interface adapter (dat_registry,
 * dat_ia_open). A registry is an object; what is of the process is only the table of open devices,
 * since a device can be opened once.
 */
import type { DeviceLease } from '../dat/context.js';
import { checkInteger, checkOneOf, checkOptions, invalid } from '../dat/guards.js';
import { Ia } from '../dat/ia.js';
import { traceTo } from '../dat/trace.js';
import { DatError } from '../errors/index.js';
import {
  type ConfiguredPlugin,
  type Logger,
  type PluginKind,
  type PluginMeta,
  silentLogger,
} from '../spi/index.js';
import { checkPlugin, checkRequirements, titleOf } from './checks.js';
import {
  DeviceTable,
  giveBack,
  MODULE_KINDS,
  type ModuleKind,
  type ModuleSet,
} from './device-table.js';

/** What `openIa` takes. */
export interface OpenIaOptions {
  /** Modules in place of the provider's own: configured plugins, or names of registered ones. */
  readonly modules?: { readonly [K in ModuleKind]?: ConfiguredPlugin<K> | string };
  /** Default: silent. */
  readonly logger?: Logger;
  /** Events that `ia.asyncEvd` holds; default 64. */
  readonly asyncEvdQlen?: number;
  /** Bound of `ia.close()` in milliseconds; default 5000. */
  readonly closeTimeoutMs?: number;
}

export interface RegistryOptions {
  readonly plugins?: readonly ConfiguredPlugin[];
}

const OPEN_OPTIONS = ['modules', 'logger', 'asyncEvdQlen', 'closeTimeoutMs'];
const ASYNC_QLEN = 64;
const CLOSE_TIMEOUT_MS = 5000;
const HOUR_MS = 3_600_000;

/** Open devices of this process. */
const devices = new DeviceTable();

interface Entry {
  readonly name: string;
  readonly plugin: ConfiguredPlugin;
  openIas: number;
}

export class Registry {
  private readonly entries = new Map<string, Entry>();

  /** @internal use `createRegistry` */
  constructor(plugins: readonly ConfiguredPlugin[]) {
    for (const plugin of plugins) this.add('createRegistry', plugin, undefined);
    checkRequirements('createRegistry', this.metas());
  }

  /**
   * Registers a plugin (dat_registry_add_provider).
   * @param name what `openIa` and module options call it; default the plugin's own
   * @throws DatError DAT_PROVIDER_ALREADY_REGISTERED; DAT_INVALID_PARAMETER for what is no
   * configured plugin; DAT_PROVIDER_NOT_FOUND for another SDK version; DAT_MODEL_NOT_SUPPORTED when
   * it requires what no plugin provides
   */
  register(plugin: ConfiguredPlugin, name?: string): void {
    const key = this.add('registry.register', plugin, name);
    try {
      checkRequirements('registry.register', this.metas());
    } catch (error) {
      this.entries.delete(key);
      throw error;
    }
  }

  /**
   * Withdraws a plugin (dat_registry_remove_provider).
   * @throws DatError DAT_PROVIDER_NOT_FOUND; DAT_PROVIDER_IN_USE while adapters of it are open
   */
  unregister(name: string, kind: PluginKind = 'provider'): void {
    const entry = this.find('registry.unregister', kind, name);
    if (entry.openIas > 0) {
      throw new DatError('DAT_PROVIDER_IN_USE', {
        operation: 'registry.unregister',
        message: `"${name}" has ${entry.openIas} open interface adapters`,
        value: name,
      });
    }
    this.entries.delete(keyOf(kind, name));
  }

  /** What is registered (dat_registry_list_providers): all kinds, or one. */
  list(kind?: PluginKind): readonly { readonly name: string; readonly meta: PluginMeta }[] {
    return [...this.entries.values()]
      .filter(({ plugin }) => kind === undefined || plugin.meta.kind === kind)
      .map(({ name, plugin }) => ({ name, meta: plugin.meta }));
  }

  /**
   * Opens an interface adapter (dat_ia_open) of a registered provider, or of one at hand.
   * @throws DatError DAT_PROVIDER_NOT_FOUND / DAT_NAME_NOT_REGISTERED; DAT_INVALID_STATE when the
   * device is open with other modules; DAT_MODEL_NOT_SUPPORTED; whatever opening the device gave
   */
  async openIa(
    provider: string | ConfiguredPlugin<'provider'>,
    options: OpenIaOptions = {},
  ): Promise<Ia> {
    const entry =
      typeof provider === 'string' ? this.find('openIa', 'provider', provider) : undefined;
    const plugin = entry?.plugin ?? provider;
    checkPlugin('openIa', plugin, 'provider');
    const modules = this.modulesOf(options);
    const count = (by: number): void => {
      if (entry !== undefined) entry.openIas += by;
    };
    count(1);
    try {
      return await open(plugin, entry?.name ?? plugin.meta.name, modules, options, () => count(-1));
    } catch (error) {
      count(-1);
      throw error;
    }
  }

  private modulesOf(options: OpenIaOptions): ModuleSet {
    checkOptions('openIa', 2, options, OPEN_OPTIONS);
    const { modules = {} } = options;
    checkOptions('openIa', 2, modules, MODULE_KINDS);
    const chosen: { [K in ModuleKind]?: ConfiguredPlugin<K> } = {};
    const choose = <K extends ModuleKind>(kind: K): void => {
      const given: unknown = modules[kind];
      if (given === undefined) return;
      const plugin: unknown =
        typeof given === 'string' ? this.find('openIa', kind, given).plugin : given;
      checkPlugin(`openIa`, plugin, kind);
      Object.assign(chosen, { [kind]: plugin });
    };
    for (const kind of MODULE_KINDS) choose(kind);
    return chosen;
  }

  private add(operation: string, plugin: unknown, alias: string | undefined): string {
    checkPlugin(operation, plugin);
    const name = alias ?? plugin.meta.name;
    if (typeof name !== 'string' || name === '') {
      throw invalid(operation, 2, 'name', name, 'a string of at least one character');
    }
    const key = keyOf(plugin.meta.kind, name);
    const present = this.entries.get(key);
    if (present !== undefined) {
      throw new DatError('DAT_PROVIDER_ALREADY_REGISTERED', {
        operation,
        message: `the name "${name}" is taken by ${titleOf(present.plugin.meta)}`,
        hint: 'register it under another name',
        value: name,
      });
    }
    this.entries.set(key, { name, plugin, openIas: 0 });
    return key;
  }

  private find(operation: string, kind: PluginKind, name: string): Entry {
    if (typeof name !== 'string') throw invalid(operation, 1, 'name', name, 'a string');
    checkOneOf(operation, 2, 'kind', kind, ['provider', ...MODULE_KINDS]);
    const entry = this.entries.get(keyOf(kind, name));
    if (entry !== undefined) return entry;
    const known = this.list(kind).map((item) => item.name);
    throw new DatError('DAT_PROVIDER_NOT_FOUND', {
      subtype: 'DAT_NAME_NOT_REGISTERED',
      operation,
      message:
        `no ${kind} plugin is registered as "${name}"; ` +
        (known.length === 0 ? 'there is none' : `there are ${known.join(', ')}`),
      value: name,
    });
  }

  private metas(): PluginMeta[] {
    return [...this.entries.values()].map(({ plugin }) => plugin.meta);
  }
}

/** @throws DatError as `Registry.register` */
export function createRegistry(options: RegistryOptions = {}): Registry {
  return new Registry(options.plugins ?? []);
}

/** Opens an interface adapter of a configured provider, without a registry of one's own. */
export async function openIa(
  provider: ConfiguredPlugin<'provider'>,
  options: OpenIaOptions = {},
): Promise<Ia> {
  return new Registry([]).openIa(provider, options);
}

async function open(
  provider: ConfiguredPlugin<'provider'>,
  providerName: string,
  modules: ModuleSet,
  options: OpenIaOptions,
  onClosed: () => void,
): Promise<Ia> {
  const {
    logger = silentLogger,
    asyncEvdQlen = ASYNC_QLEN,
    closeTimeoutMs = CLOSE_TIMEOUT_MS,
  } = options;
  checkInteger('openIa', 2, 'asyncEvdQlen', asyncEvdQlen, 1, 2 ** 20);
  checkInteger('openIa', 2, 'closeTimeoutMs', closeTimeoutMs, 1, HOUR_MS);
  const used = MODULE_KINDS.flatMap((kind) => modules[kind]?.meta ?? []);
  checkRequirements('openIa', [provider.meta, ...used]);
  const device = await devices.acquire(provider, modules, logger);
  try {
    const services = device.services(logger);
    const context = { ...services, trace: traceTo(logger) };
    const lease: DeviceLease = {
      onEvent: (listener) => device.onEvent(listener),
      release: () => {
        const release = device.release();
        const done = (): void => {
          release.done();
          onClosed();
        };
        return { ...release, done };
      },
    };
    return new Ia({ context, lease, providerName, asyncEvdQlen, closeTimeoutMs });
  } catch (error) {
    await giveBack(device);
    throw error;
  }
}

/** Names are unique among the plugins of a kind. */
function keyOf(kind: PluginKind, name: string): string {
  return `${kind} ${name}`;
}
