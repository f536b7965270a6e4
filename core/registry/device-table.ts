/**
 * Devices of the process. A device is opened once for its key and counted; opens of one key at the
 * same time share one opening; a failed one leaves nothing open.
 */
import { DeviceContainer, type DeviceServices, type Override, type TeardownStep } from '../di/index.js';
import { DatError, toDatError } from '../errors/index.js';
import {
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

/** An open device, held by one interface adapter. */
export interface DeviceLease {
  services(logger: Logger): DeviceServices;
  /**
   * Gives the device back, once. For the last holder, the steps that end it: the modules before the
   * queue pairs go, the device after everything; `done` when they have run.
   */
  release(): DeviceRelease;
}

export interface DeviceRelease {
  readonly modules: readonly TeardownStep[];
  readonly device: readonly TeardownStep[];
  done(): void;
}

interface Entry {
  readonly container: DeviceContainer;
  readonly modules: ModuleSet;
  readonly opened: Promise<void>;
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
  ): Promise<DeviceLease> {
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
    const opened = open(container, provider).catch((error: unknown) => {
      this.entries.delete(key);
      throw toDatError(error, {
        operation: 'openIa',
        value: provider.instance.deviceKey,
        map: { EADDRINUSE: ['DAT_PORT_IN_USE'] },
      });
    });
    const entry: Entry = { container, modules, opened, holders: 0, closing: undefined };
    this.entries.set(key, entry);
    return entry;
  }

  private lease(key: string, entry: Entry): DeviceLease {
    let released = false;
    return {
      services: (logger) => entry.container.servicesFor(logger),
      release: () => {
        if (released) return NOTHING;
        released = true;
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
      modules: [...step('CM', TOKENS.cm), ...step('MAD', TOKENS.mad), ...step('XRC', TOKENS.xrc)],
      device: step('device', DEVICE),
      done,
    };
  }
}

const NOTHING: DeviceRelease = { modules: [], device: [], done: () => undefined };

/** Opens the device and makes what every interface adapter needs; closes it again if that fails. */
async function open(
  container: DeviceContainer,
  provider: ConfiguredPlugin<'provider'>,
): Promise<void> {
  try {
    await provider.instance.open(container, container.resolver);
    container.resolver.resolve(DEVICE);
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
