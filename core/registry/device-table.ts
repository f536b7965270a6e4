/**
 * Devices of the process. A device is opened once for its key and counted; opens of one key at the
 * same time share one opening; a failed one leaves nothing open.
 */
import {
  DeviceContainer,
  type DeviceServices,
  type Override,
  type TeardownStep,
} from '../di/index.js';
import type { DeviceLease, DeviceRelease } from '../dat/common/context.js';
import { DatError, toDatError } from '../errors/index.js';
import {
  type AsyncEventType,
  CM,
  type ConfiguredPlugin,
  DEVICE,
  type Logger,
  MAD,
  type PluginKind,
  type Resolver,
  type Token,
  XRC,
} from '../spi/index.js';
import { titleOf } from './checks.js';

/** Kinds that an application may override when it opens a device. */
export type ModuleKind = Exclude<PluginKind, 'provider'>;
export type ModuleSet = Readonly<{ [K in ModuleKind]?: ConfiguredPlugin<K> }>;

export const MODULE_KINDS = ['cm', 'mad', 'xrc'] as const satisfies readonly ModuleKind[];
const TOKENS: Readonly<Record<ModuleKind, Token<{ close(): Promise<void> }>>> = {
  cm: CM,
  mad: MAD,
  xrc: XRC,
};

/** An open device with its container, held by one interface adapter. */
export interface OpenDevice extends DeviceLease {
  services(logger: Logger): DeviceServices;
}

interface Entry {
  readonly container: DeviceContainer;
  readonly modules: ModuleSet;
  readonly opened: Promise<void>;
  readonly listeners: Set<(event: AsyncEventType) => void>;
  holders: number;
  /** Set while it is being ended; resolves when another opening may start. */
  closing: Promise<void> | undefined;
}

export class DeviceTable {
  private readonly entries = new Map<string, Entry>();

  /** @throws DatError DAT_INVALID_STATE when the device is open with another module */
  async acquire(
    provider: ConfiguredPlugin<'provider'>,
    modules: ModuleSet,
    logger: Logger,
  ): Promise<OpenDevice> {
    const key = `${provider.meta.name} ${provider.instance.deviceKey}`;
    let entry = this.entries.get(key);
    while (entry?.closing !== undefined) {
      await entry.closing;
      entry = this.entries.get(key);
    }
    if (entry === undefined) entry = this.start(key, provider, modules, logger);
    else checkOverrides(provider, entry.modules, modules);
    entry.holders++;
    await entry.opened;
    return this.lease(key, entry);
  }

  private start(
    key: string,
    provider: ConfiguredPlugin<'provider'>,
    modules: ModuleSet,
    logger: Logger,
  ): Entry {
    const container = new DeviceContainer(logger, overridesOf(modules));
    const listeners = new Set<(event: AsyncEventType) => void>();
    const onEvent = (event: AsyncEventType): void => {
      for (const listener of [...listeners]) listener(event);
    };
    const opened = open(container, provider, onEvent).catch((error: unknown) => {
      this.entries.delete(key);
      throw toDatError(error, {
        operation: 'openIa',
        value: provider.instance.deviceKey,
        map: { EADDRINUSE: ['DAT_PORT_IN_USE'] },
      });
    });
    const entry: Entry = {
      container,
      modules,
      opened,
      listeners,
      holders: 0,
      closing: undefined,
    };
    this.entries.set(key, entry);
    return entry;
  }

  private lease(key: string, entry: Entry): OpenDevice {
    let released = false;
    let unlisten = (): void => undefined;
    return {
      onEvent: (listener) => {
        entry.listeners.add(listener);
        unlisten = () => void entry.listeners.delete(listener);
      },
      services: (logger) => entry.container.servicesFor(logger),
      mad: () => {
        const { resolver } = entry.container;
        return resolver.has(MAD) ? resolver.resolve(MAD) : undefined;
      },
      release: () => {
        if (released) return NOTHING;
        released = true;
        unlisten();
        return --entry.holders > 0 ? NOTHING : this.end(key, entry);
      },
    };
  }

  private end(key: string, entry: Entry): DeviceRelease {
    let done = (): void => undefined;
    entry.closing = new Promise((resolve) => {
      done = () => {
        this.entries.delete(key);
        resolve();
      };
    });
    const { container } = entry;
    const step = (name: string, token: Token<{ close(): Promise<void> }>): TeardownStep[] =>
      container.isMade(token)
        ? [{ name, run: () => container.resolver.resolve(token).close() }]
        : [];
    return {
      modules: [...step('CM', TOKENS.cm), ...step('MAD', TOKENS.mad)],
      // Targets outlive the adapters that made them: they end when all of those have.
      device: [...step('XRC', TOKENS.xrc), ...step('device', DEVICE)],
      done,
    };
  }
}

/** Ends a lease outside of an interface adapter: none came about. */
export async function giveBack(device: OpenDevice): Promise<void> {
  const release = device.release();
  try {
    for (const step of [...release.modules, ...release.device]) await step.run();
  } finally {
    release.done();
  }
}

const NOTHING: DeviceRelease = { modules: [], device: [], done: () => undefined };

/** Opens the device and makes what every interface adapter needs; closes it again if that fails. */
async function open(
  container: DeviceContainer,
  provider: ConfiguredPlugin<'provider'>,
  onEvent: (event: AsyncEventType) => void,
): Promise<void> {
  try {
    await provider.instance.open(container, container.resolver);
    container.resolver.resolve(DEVICE).setEventHandler(onEvent);
    container.resolver.resolve(CM);
  } catch (error) {
    for (const token of [CM, MAD, XRC, DEVICE] as Token<{ close(): Promise<void> }>[]) {
      if (container.isMade(token)) await container.resolver.resolve(token).close();
    }
    throw error;
  }
}

function overridesOf(modules: ModuleSet): Override[] {
  const overrides: Override[] = [];
  for (const kind of MODULE_KINDS) {
    const plugin: ConfiguredPlugin<ModuleKind> | undefined = modules[kind];
    if (plugin === undefined) continue;
    const factory: (resolver: Resolver) => unknown = plugin.instance;
    overrides.push({ token: TOKENS[kind], factory });
  }
  return overrides;
}

function checkOverrides(
  provider: ConfiguredPlugin<'provider'>,
  present: ModuleSet,
  wanted: ModuleSet,
): void {
  for (const kind of MODULE_KINDS) {
    const plugin = wanted[kind];
    if (plugin === undefined || plugin === present[kind]) continue;
    const with_ = present[kind] === undefined ? 'its own module' : titleOf(present[kind].meta);
    throw new DatError('DAT_INVALID_STATE', {
      subtype: 'DAT_INVALID_STATE_IA_IN_USE',
      operation: 'openIa',
      message:
        `device "${provider.instance.deviceKey}" of ${titleOf(provider.meta)} is open with ` +
        `${with_} for ${kind}; it cannot take another ${titleOf(plugin.meta)}`,
      hint: 'close its interface adapters first, or pass the same plugin object',
      value: plugin,
    });
  }
}
