/**
 * The registry: plugins and adapters by name, and opening of interface adapters (dat_registry,
 * dat_ia_open). A registry is an object. Only the table of open devices is global to the process,
 * since a device can be opened once.
 */
import type { Ia } from '../dat/ia/ia.js';
import type { IaQuery } from '../dat/ia/attributes.js';
import { checkFields, checkParameter } from '../errors/guards.js';
import { DatError } from '../errors/index.js';
import {
  FUNCTION,
  type Kinds,
  kindOf,
  LIST,
  OBJECT,
  optional,
  show,
  showAs,
} from '../spi/checks/index.js';
import type {
  ConfiguredPlugin,
  ModuleClass,
  ModuleKind,
  PluginKind,
  PluginMeta,
  ProviderInstance,
} from '../spi/index.js';
import { isConfiguredPlugin } from '../spi/internal/index.js';
import { checkPlugin, checkRequirements } from './checks.js';
import { type DatConf } from './dat-conf.js';
import { MODULE_KINDS, type ModuleSet } from './device-table.js';
import { checkOpenOptions, open, type OpenIaOptions, type Platform } from './opening.js';
import { countByObject, openIasOf, PluginTable, type Registration } from './plugin-table.js';
import {
  type IaName,
  matchProviders,
  type ProviderInfo,
  providerQuery,
  type ProviderRelation,
  relationOf,
} from './provider-info.js';
import { type ProviderLoader, StaticProvider } from './static-provider.js';

export interface RegistryOptions {
  readonly plugins?: readonly (ConfiguredPlugin | ModuleClass)[];
  /** Static entries (`parseDatConf`), and how their libraries are loaded. */
  readonly datConf?: DatConf;
  /** Default: nothing can be loaded. */
  readonly load?: ProviderLoader;
  /** Wraps every provider that is opened: for observers, such as a capture. */
  readonly decorate?: (provider: ConfiguredPlugin<'provider'>) => ConfiguredPlugin<'provider'>;
  /** Default: silence without a logger, and memory up to the device's limit. */
  readonly platform?: Platform;
}

const DAT_CONF = kindOf<DatConf>('what parseDatConf or readDatConf gives', (value) => {
  const { entries, errors } = (value ?? {}) as Partial<DatConf>;
  return Array.isArray(entries) && Array.isArray(errors);
});
const REGISTRY_OPTIONS: Kinds<RegistryOptions> = {
  plugins: optional(LIST),
  datConf: optional(DAT_CONF),
  load: optional(FUNCTION),
  decorate: optional(FUNCTION),
  platform: optional(OBJECT),
};

/** Target of `openIa`: a name, or a configured provider. */
export type OpenTarget = string | IaName | ConfiguredPlugin<'provider'>;

/** A provider found by name. */
interface Candidate {
  readonly info: ProviderInfo;
  readonly plugin: () => Promise<ConfiguredPlugin<'provider'>>;
  readonly count: (by: number) => void;
}

export class Registry {
  static {
    showAs(this, 'Registry', ({ plugins, statics, datConfErrors }) => {
      const skipped = datConfErrors.length;
      return { plugins: plugins.metas.length, datConf: statics.length, skipped };
    });
  }

  private readonly plugins = new PluginTable();
  private readonly statics: readonly StaticProvider[];
  private readonly decorate: (
    provider: ConfiguredPlugin<'provider'>,
  ) => ConfiguredPlugin<'provider'>;
  private readonly platform: Platform | undefined;
  /** Errors of the skipped lines of dat.conf. */
  readonly datConfErrors: readonly DatError[];

  /** @internal use `createRegistry` */
  constructor(options: RegistryOptions) {
    checkFields('createRegistry', options, REGISTRY_OPTIONS);
    const { plugins = [], datConf = { entries: [], errors: [] }, load = loadNothing } = options;
    for (const plugin of plugins) this.plugins.add('createRegistry', plugin);
    checkRequirements('createRegistry', this.plugins.metas);
    this.statics = datConf.entries
      .filter(({ api, isDefault }) => api === 'u' && isDefault)
      .map((entry) => new StaticProvider(entry, load));
    this.datConfErrors = datConf.errors;
    this.decorate = options.decorate ?? ((provider) => provider);
    this.platform = options.platform;
  }

  /**
   * Registers a plugin (dat_registry_add_provider). It takes precedence over lines of dat.conf with
   * the same name.
   * @param registration its name, or name, API version and thread safety
   * @throws DatError DAT_PROVIDER_ALREADY_REGISTERED; DAT_INVALID_PARAMETER for what is no
   * configured plugin; DAT_PROVIDER_NOT_FOUND for another SDK version; DAT_MODEL_NOT_SUPPORTED when
   * it requires what no plugin provides
   */
  register(plugin: ConfiguredPlugin | ModuleClass, registration?: string | Registration): void {
    const entry = this.plugins.add('registry.register', plugin, registration);
    try {
      checkRequirements('registry.register', this.plugins.metas);
    } catch (error) {
      this.plugins.remove(entry);
      throw error;
    }
  }

  /**
   * Removes a plugin (dat_registry_remove_provider): the first of that name. Lines of dat.conf
   * stay, as in DAT.
   * @throws DatError DAT_PROVIDER_NOT_FOUND; DAT_PROVIDER_IN_USE while adapters of it are open
   */
  unregister(name: string, kind: PluginKind = 'provider'): void {
    const entry = this.plugins.find('registry.unregister', kind, name);
    const openIas = openIasOf(entry);
    if (openIas > 0) {
      throw new DatError('DAT_PROVIDER_IN_USE', {
        operation: 'registry.unregister',
        message: `${show(name)} has ${openIas} open interface adapters`,
        hint: 'close them first',
        value: name,
      });
    }
    this.plugins.remove(entry);
  }

  /** The registered plugins: all kinds, or one. */
  list(kind?: PluginKind): readonly { readonly name: string; readonly meta: PluginMeta }[] {
    return this.plugins.all
      .filter((entry) => kind === undefined || entry.kind === kind)
      .map(({ info, plugin }) => ({ name: info.iaName, meta: plugin.meta }));
  }

  /**
   * Adapters that can be opened by name (dat_registry_list_providers), in the order of trial:
   * registered providers, then lines of dat.conf. Loads nothing.
   */
  listProviders(): readonly ProviderInfo[] {
    return this.candidates().map(({ info }) => info);
  }

  /**
   * Opens an interface adapter (dat_ia_open, dat_ia_openv) by name, or of a configured provider. If
   * several lines of dat.conf match, the next is tried when the library of one does not load.
   * @throws DatError DAT_PROVIDER_NOT_FOUND, whose subtype tells a name, a major or minor version
   * and a thread safety that are not there apart; DAT_INVALID_STATE when the device is open with
   * other modules; DAT_MODEL_NOT_SUPPORTED; whatever opening the device gave
   */
  async openIa(target: OpenTarget, options: OpenIaOptions = {}): Promise<Ia> {
    checkOpenOptions(options);
    const modules = this.modulesOf(options);
    const { provider: plain, name, count } = await this.resolve('openIa', target);
    count(1);
    try {
      const provider = this.decorate(decoratedBy(options, plain));
      const { platform } = this;
      const onClosed = (): void => count(-1);
      return await open({ provider, name, modules, options, platform, onClosed });
    } catch (error) {
      count(-1);
      throw error;
    }
  }

  /**
   * Attributes of an adapter and its provider, without keeping it open (dat_ib_open_query and
   * dat_ib_close_query).
   * @throws DatError as `openIa`
   */
  async queryIa(target: OpenTarget, options: OpenIaOptions = {}): Promise<IaQuery> {
    const ia = await this.openIa(target, options);
    try {
      return ia.query();
    } finally {
      await ia.close();
    }
  }

  /**
   * Tells whether two adapters can be alternate paths (dat_registry_providers_related). Loads their
   * providers, but opens no device.
   * @throws DatError DAT_PROVIDER_NOT_FOUND
   */
  async providersRelated(one: string | IaName, other: string | IaName): Promise<ProviderRelation> {
    const operation = 'registry.providersRelated';
    const instance = async (target: string | IaName): Promise<ProviderInstance> =>
      (await this.resolve(operation, target)).provider.instance;
    return relationOf(await instance(one), await instance(other));
  }

  private async resolve(
    operation: string,
    target: OpenTarget,
  ): Promise<{
    readonly provider: ConfiguredPlugin<'provider'>;
    readonly name: string;
    readonly count: (by: number) => void;
  }> {
    if (!isName(target)) {
      const provider = checkPlugin(operation, target, 'provider');
      const count = (by: number): void => countByObject(provider, by);
      return { provider, name: provider.meta.name, count };
    }
    const query = providerQuery(operation, target);
    const matches = matchProviders(operation, query, this.candidates(), this.hint());
    const failures: Error[] = [];
    for (const { plugin, count } of matches) {
      try {
        return { provider: await plugin(), name: query.name, count };
      } catch (error) {
        failures.push(error as Error);
      }
    }
    const [first] = failures;
    if (failures.length === 1 && first !== undefined) throw first;
    throw new DatError('DAT_PROVIDER_NOT_FOUND', {
      subtype: 'DAT_NAME_NOT_REGISTERED',
      operation,
      message:
        `${failures.length} providers called ${show(query.name)} do not load: ` + texts(failures),
      value: query.name,
      cause: new AggregateError(failures, 'providers do not load'),
    });
  }

  private candidates(): readonly Candidate[] {
    const registered = this.plugins.ofKind('provider').map((entry): Candidate => {
      const plugin = entry.plugin as ConfiguredPlugin<'provider'>;
      const count = (by: number): void => void (entry.openIas += by);
      return { info: entry.info, plugin: async () => plugin, count };
    });
    const lines = this.statics.map((line): Candidate => ({
      info: line.info,
      plugin: () => line.plugin(),
      count: () => undefined,
    }));
    return [...registered, ...lines];
  }

  /** The requested line may be one that was skipped. */
  private hint(): string | undefined {
    const [first] = this.datConfErrors;
    if (first === undefined) return undefined;
    const { length } = this.datConfErrors;
    return `lines of dat.conf that were skipped: ${length}, first ${first.operation}`;
  }

  private modulesOf({ modules = {} }: OpenIaOptions): ModuleSet {
    const chosen: { [K in ModuleKind]?: ConfiguredPlugin<K> } = {};
    const choose = <K extends ModuleKind>(kind: K): void => {
      const given: unknown = modules[kind];
      if (given === undefined) return;
      const plugin =
        typeof given === 'string' ? this.plugins.find('openIa', kind, given).plugin : given;
      Object.assign(chosen, { [kind]: checkPlugin('openIa', plugin, kind) });
    };
    for (const kind of MODULE_KINDS) choose(kind);
    return chosen;
  }
}

/** @throws DatError as `Registry.register` */
export function createRegistry(options: RegistryOptions = {}): Registry {
  return new Registry(options);
}

/** Opens an interface adapter of a configured provider, without creating a registry. */
export async function openIa(
  provider: ConfiguredPlugin<'provider'>,
  options: OpenIaOptions = {},
): Promise<Ia> {
  return new Registry({}).openIa(provider, options);
}

/** @throws DatError DAT_INVALID_PARAMETER where what it gives is no provider */
function decoratedBy(
  { decorate }: OpenIaOptions,
  provider: ConfiguredPlugin<'provider'>,
): ConfiguredPlugin<'provider'> {
  if (decorate === undefined) return provider;
  const decorated: unknown = decorate(provider);
  const isProvider = isConfiguredPlugin(decorated) && decorated.meta.kind === 'provider';
  checkParameter('openIa', 'decorate', decorated, isProvider, 'a function that gives a provider');
  return decorated as ConfiguredPlugin<'provider'>;
}

function isName(target: OpenTarget): target is string | IaName {
  if (typeof target === 'string') return true;
  return typeof target === 'object' && !isConfiguredPlugin(target) && 'name' in (target ?? {});
}

function texts(errors: readonly Error[]): string {
  return errors.map(({ message }) => message).join('; ');
}

async function loadNothing(libPath: string): Promise<never> {
  throw new Error(`this registry loads no libraries, so not ${libPath} either`);
}
