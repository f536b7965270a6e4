/** The plugins of a registry: providers and modules by name, and their open adapters. */
import { checkFields, checkOneOf, checkParameter } from '../errors/guards.js';
import { ANYTHING, BOOLEAN, type Kinds, optional, show, TEXT } from '../spi/checks/index.js';
import { DatError } from '../errors/index.js';
import type { ConfiguredPlugin, PluginKind, PluginMeta } from '../spi/index.js';
import { titleOf } from '../spi/internal/index.js';
import { checkPlugin } from './checks.js';
import { MODULE_KINDS } from './device-table.js';
import { parseVersion, type ProviderInfo } from './provider-info.js';

/** How a plugin is registered; a string is its name. */
export interface Registration {
  /** Name for `openIa` and module options; default the plugin's own name. */
  readonly name?: string;
  /** API version of a provider, `major.minor`; default `2.0`. */
  readonly version?: string;
  /** Default false. */
  readonly threadSafe?: boolean;
}

const REGISTRATION: Kinds<Registration> = {
  name: optional(TEXT),
  // Checked by itself.
  version: ANYTHING,
  threadSafe: optional(BOOLEAN),
};

/** Open adapters by the plugin objects that opened them, in every registry. */
const openByObject = new WeakMap<ConfiguredPlugin, number>();

/** Counts an adapter opened with a plugin object (or closed: -1), not by the plugin's name. */
export function countByObject(plugin: ConfiguredPlugin, by: number): void {
  openByObject.set(plugin, (openByObject.get(plugin) ?? 0) + by);
}

/** A registered plugin. */
export interface PluginEntry {
  readonly kind: PluginKind;
  readonly info: ProviderInfo;
  readonly plugin: ConfiguredPlugin;
  openIas: number;
}

/** Its open adapters: by its name, and with the plugin itself. */
export function openIasOf({ openIas, plugin }: PluginEntry): number {
  return openIas + (openByObject.get(plugin) ?? 0);
}

export class PluginTable {
  private entries: readonly PluginEntry[] = [];

  get all(): readonly PluginEntry[] {
    return this.entries;
  }

  get metas(): readonly PluginMeta[] {
    return this.entries.map(({ plugin }) => plugin.meta);
  }

  ofKind(kind: PluginKind): readonly PluginEntry[] {
    return this.entries.filter((entry) => entry.kind === kind);
  }

  /**
   * @throws DatError DAT_PROVIDER_ALREADY_REGISTERED when name, version and thread safety are taken
   */
  add(operation: string, given: unknown, registration: string | Registration = {}): PluginEntry {
    const plugin: ConfiguredPlugin = checkPlugin(operation, given);
    const options = typeof registration === 'string' ? { name: registration } : registration;
    checkFields(operation, options, REGISTRATION);
    const { name = plugin.meta.name, version, threadSafe = false } = options;
    const { major, minor } = parseVersion(operation, version);
    const info: ProviderInfo = {
      iaName: name,
      versionMajor: major,
      versionMinor: minor,
      isThreadSafe: threadSafe,
      origin: 'registered',
    };
    const present = this.ofKind(plugin.meta.kind).find((entry) => same(entry.info, info));
    if (present !== undefined) throw taken(operation, name, present.plugin);
    const entry = { kind: plugin.meta.kind, info, plugin, openIas: 0 };
    this.entries = [...this.entries, entry];
    return entry;
  }

  remove(entry: PluginEntry): void {
    this.entries = this.entries.filter((other) => other !== entry);
  }

  /** @throws DatError DAT_PROVIDER_NOT_FOUND / DAT_NAME_NOT_REGISTERED; DAT_INVALID_PARAMETER */
  find(operation: string, kind: PluginKind, name: string): PluginEntry {
    checkParameter(operation, 'name', name, typeof name === 'string', 'a string');
    checkOneOf(operation, 'kind', kind, ['provider', ...MODULE_KINDS]);
    const entry = this.ofKind(kind).find(({ info }) => info.iaName === name);
    if (entry !== undefined) return entry;
    const known = this.ofKind(kind).map(({ info }) => info.iaName);
    throw new DatError('DAT_PROVIDER_NOT_FOUND', {
      subtype: 'DAT_NAME_NOT_REGISTERED',
      operation,
      message:
        `no ${kind} plugin is registered as ${show(name)}; ` +
        (known.length === 0 ? 'there is none' : `there are ${known.join(', ')}`),
      value: name,
    });
  }
}

function same(a: ProviderInfo, b: ProviderInfo): boolean {
  return (
    a.iaName === b.iaName &&
    a.versionMajor === b.versionMajor &&
    a.versionMinor === b.versionMinor &&
    a.isThreadSafe === b.isThreadSafe
  );
}

function taken(operation: string, name: string, plugin: ConfiguredPlugin): DatError {
  return new DatError('DAT_PROVIDER_ALREADY_REGISTERED', {
    operation,
    message: `the name ${show(name)} is taken by ${titleOf(plugin.meta)}`,
    hint: 'register it under another name',
    value: name,
  });
}
