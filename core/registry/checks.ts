/** Checks of plugins before anything opens. Each refusal is a sentence that names both sides. */

import { DatError } from '../errors/index.js';
import { show } from '../spi/checks/index.js';
import {
  CAPABILITIES,
  type ConfiguredPlugin,
  type Device,
  isConfiguredPlugin,
  type PluginKind,
  type PluginMeta,
  sdkMismatch,
  titleOf,
} from '../spi/index.js';

/**
 * Checks that this version of the SDK accepts a plugin.
 * @throws DatError DAT_INVALID_PARAMETER for what is no configured plugin, or one of another kind;
 * DAT_PROVIDER_NOT_FOUND / DAT_MAJOR_NOT_FOUND or DAT_MINOR_NOT_FOUND for another SDK version
 */
export function checkPlugin<K extends PluginKind>(
  operation: string,
  plugin: unknown,
  kind?: K,
): asserts plugin is ConfiguredPlugin<K> {
  if (!isConfiguredPlugin(plugin)) {
    const hint =
      typeof plugin === 'function' ? 'call the plugin with its options' : 'use definePlugin';
    throw new DatError('DAT_INVALID_PARAMETER', {
      subtype: 'DAT_INVALID_ARG1',
      operation,
      message: `${show(plugin)} is not a configured plugin`,
      hint,
      value: plugin,
    });
  }
  if (kind !== undefined && plugin.meta.kind !== kind) {
    throw new DatError('DAT_INVALID_PARAMETER', {
      subtype: 'DAT_INVALID_ARG1',
      operation,
      message: `${titleOf(plugin.meta)} stands where a ${kind} plugin belongs`,
      value: plugin,
    });
  }
  const mismatch = sdkMismatch(plugin.meta);
  if (mismatch === undefined) return;
  const sameMajor = sdkMismatch({ ...plugin.meta, sdkVersion: majorOnly(plugin.meta) });
  throw new DatError('DAT_PROVIDER_NOT_FOUND', {
    subtype: sameMajor === undefined ? 'DAT_MINOR_NOT_FOUND' : 'DAT_MAJOR_NOT_FOUND',
    operation,
    ...mismatch,
    value: plugin.meta.sdkVersion,
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
