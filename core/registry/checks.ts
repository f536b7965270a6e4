/** Checks of plugins before anything opens. Each refusal is a sentence that names both sides. */

import { DatError } from '../errors/index.js';
import { show } from '../spi/checks/index.js';
import {
  CAPABILITIES,
  type ConfiguredPlugin,
  type Device,
  type PluginKind,
  type PluginMeta,
} from '../spi/index.js';
import {
  configuredPlugin,
  isConfiguredPlugin,
  sdkMismatch,
  titleOf,
} from '../spi/internal/index.js';

/**
 * The plugin, if this version of the SDK accepts it; a class with `@plugin` is made one.
 * @throws DatError DAT_INVALID_PARAMETER for what is no configured plugin, or one of another kind;
 * DAT_PROVIDER_NOT_FOUND / DAT_MAJOR_NOT_FOUND or DAT_MINOR_NOT_FOUND for another SDK version
 */
export function checkPlugin<K extends PluginKind>(
  operation: string,
  given: unknown,
  kind?: K,
): ConfiguredPlugin<K> {
  const plugin = configuredPlugin(given);
  if (!isConfiguredPlugin(plugin)) throw notPlugin(operation, plugin);
  if (kind !== undefined && plugin.meta.kind !== kind) {
    throw new DatError('DAT_INVALID_PARAMETER', {
      subtype: 'DAT_INVALID_ARG1',
      operation,
      message: `${titleOf(plugin.meta)} stands where a ${kind} plugin belongs`,
      value: plugin,
    });
  }
  const mismatch = sdkMismatch(plugin.meta);
  if (mismatch === undefined) return plugin as ConfiguredPlugin<K>;
  const sameMajor = sdkMismatch({ ...plugin.meta, sdkVersion: majorOnly(plugin.meta) });
  throw new DatError('DAT_PROVIDER_NOT_FOUND', {
    subtype: sameMajor === undefined ? 'DAT_MINOR_NOT_FOUND' : 'DAT_MAJOR_NOT_FOUND',
    operation,
    ...mismatch,
    value: plugin.meta.sdkVersion,
  });
}

function notPlugin(operation: string, value: unknown): DatError {
  const isClass = typeof value === 'function' && !('meta' in value);
  const name = isClass && value.name !== '' ? value.name : show(value);
  const other =
    typeof value === 'function' ? 'call the plugin with its options' : 'use definePlugin';
  return new DatError('DAT_INVALID_PARAMETER', {
    subtype: 'DAT_INVALID_ARG1',
    operation,
    message: `${name} is not a configured plugin`,
    hint: isClass ? 'put @plugin above the class, or use definePlugin' : other,
    value,
  });
}

/**
 * Checks that every capability that a plugin of the set requires is provided, by another one or
 * itself. A module provides at least its own kind.
 * @throws DatError DAT_MODEL_NOT_SUPPORTED
 */
export function checkRequirements(operation: string, metas: readonly PluginMeta[]): void {
  const provided = new Set(metas.flatMap((meta) => [...meta.provides, meta.kind as string]));
  for (const meta of metas) {
    const missing = meta.requires.find((capability) => !provided.has(capability));
    if (missing === undefined) continue;
    const others = metas.filter((other) => other !== meta).map(offerOf);
    const rest = others.length === 0 ? 'nothing else is there' : others.join('; ');
    throw new DatError('DAT_MODEL_NOT_SUPPORTED', {
      operation,
      message: `${titleOf(meta)} requires ${show(missing)}, which none provides: ${rest}`,
      value: missing,
    });
  }
}

/** Capabilities of modules; the others are of the device. */
const OF_MODULES: readonly string[] = ['mad', 'cm', 'device', 'port'];

/**
 * Checks what modules require of the open device: a provider names what its devices may have.
 * @throws DatError DAT_MODEL_NOT_SUPPORTED
 */
export function checkDevice(metas: readonly PluginMeta[], { name, capabilities }: Device): void {
  const has: ReadonlySet<string> = capabilities;
  const names: readonly string[] = CAPABILITIES;
  for (const meta of metas) {
    const missing = meta.requires.find(
      (each) => names.includes(each) && !OF_MODULES.includes(each) && !has.has(each),
    );
    if (missing === undefined) continue;
    throw new DatError('DAT_MODEL_NOT_SUPPORTED', {
      operation: 'openIa',
      message: `${titleOf(meta)} requires ${show(missing)}, which device ${show(name)} has not`,
      value: missing,
    });
  }
}

function offerOf(meta: PluginMeta): string {
  const list = meta.provides.length === 0 ? 'nothing' : meta.provides.join(', ');
  return `${titleOf(meta)} provides ${list}`;
}

function majorOnly(meta: PluginMeta): string {
  return `${meta.sdkVersion.split('.')[0] ?? ''}.0`;
}
