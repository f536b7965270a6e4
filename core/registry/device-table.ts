/**
 * Devices of the process. A device is opened once per key and counted. Simultaneous openings of one
 * key share one opening; a failed one leaves nothing open.
 */
import { show } from '../spi/checks/index.js';
import {
  DeviceContainer,
  type DeviceServices,
  type Layer,
  type TeardownStep,
} from '../di/index.js';
import type { DeviceLease, DeviceRelease } from '../dat/common/adapter-state.js';
import { DatError, toDatError } from '../errors/index.js';
import { isSpiError } from '../spi/errors/consumer-errors.js';
import {
  type AsyncEventType,
  CM,
  type ConfiguredModule,
  type ConfiguredProvider,
  DEVICE,
  type Logger,
  MAD,
  type ModuleKind,
  PACKET_PORT,
  type Token,
  XRC,
} from '../spi/index.js';
import { MODULE_TOKENS, titleOf } from '../spi/internal/index.js';

/** Modules of the application, by kind. */
export type ModuleSet = Readonly<{ [K in ModuleKind]?: ConfiguredModule<K> }>;

export const MODULE_KINDS: readonly ModuleKind[] = ['cm', 'mad', 'xrc', 'device', 'port'];

interface Closing {
  close(): Promise<void>;
}

/** An open device with its container, held by one interface adapter. */
export interface OpenDevice extends DeviceLease {
  services(logger: Logger): DeviceServices;
}

interface Entry {
  readonly container: DeviceContainer;
  readonly modules: readonly ConfiguredModule[];
  readonly opened: Promise<void>;
  readonly listeners: Set<(event: AsyncEventType) => void>;
  holders: number;
  /** Set during its teardown; resolves when another opening may start. */
  closing: Promise<void> | undefined;
}

export class DeviceTable {
  private readonly entries = new Map<string, Entry>();

  /** @throws DatError DAT_INVALID_STATE when the device is open with another module */
  async acquire(
    provider: ConfiguredProvider,
    modules: ModuleSet,
    logger: Logger,
  ): Promise<OpenDevice> {
    const key = `${provider.meta.name} ${provider.instance.deviceKey}`;
    const over = modulesOver(provider, modules);
    let entry = this.entries.get(key);
    while (entry?.closing !== undefined) {
      await entry.closing;
      entry = this.entries.get(key);
    }
    if (entry === undefined) entry = this.start(key, provider, over, logger);
    else checkModules(provider, entry.modules, over);
    entry.holders++;
    await entry.opened;
    return this.lease(key, entry);
  }

  private start(
    key: string,
    provider: ConfiguredProvider,
    modules: readonly ConfiguredModule[],
    logger: Logger,
  ): Entry {
    const container = new DeviceContainer(logger, titleOf(provider.meta), modules.map(layerOf));
    const listeners = new Set<(event: AsyncEventType) => void>();
    const onEvent = (event: AsyncEventType): void => {
      for (const listener of [...listeners]) listener(event);
    };
    const opened = open(container, provider, logger, onEvent).catch((error: unknown) => {
      this.entries.delete(key);
      throw toDatError(named(error, provider), {
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
      mad: () => (entry.container.has(MAD) ? entry.container.resolve(MAD) : undefined),
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
    // A wrapper ends what it wraps, so each kind is closed once.
    const step = (name: string, token: Token<Closing>): TeardownStep[] => {
      const made = entry.container.madeOf(token);
      return made === undefined ? [] : [{ name, run: () => made.close() }];
    };
    return {
      modules: [...step('CM', CM), ...step('MAD', MAD)],
      // Targets outlive the adapters that created them: they end when all adapters have ended.
      device: [...step('XRC', XRC), ...step('device', DEVICE)],
      done,
    };
  }
}

/** Adds the provider's name to an error that it did not throw on purpose. */
function named(error: unknown, provider: ConfiguredProvider): unknown {
  if (DatError.isDatError(error) || isSpiError(error)) return error;
  const text = error instanceof Error ? error.message : String(error);
  return new Error(`${titleOf(provider.meta)} failed: ${text}`, { cause: error });
}

/** Ends a lease without an interface adapter: its creation failed. */
export async function giveBack(device: OpenDevice): Promise<void> {
  const release = device.release();
  try {
    for (const step of [...release.modules, ...release.device]) await step.run();
  } finally {
    release.done();
  }
}

const NOTHING: DeviceRelease = { modules: [], device: [], done: () => undefined };

/** Opens the device and creates the services of interface adapters; closes it again on failure. */
async function open(
  container: DeviceContainer,
  provider: ConfiguredProvider,
  logger: Logger,
  onEvent: (event: AsyncEventType) => void,
): Promise<void> {
  await provider.instance.open(container, logger);
  try {
    container.seal();
    container.resolve(DEVICE).setEventHandler(onEvent);
    container.resolve(CM);
    container.opened();
  } catch (error) {
    await closeAll(container);
    throw error;
  }
}

/** Ends the created parts, and those that the provider opened; failures stop nothing. */
async function closeAll(container: DeviceContainer): Promise<void> {
  const ended = async (find: () => Closing | undefined): Promise<boolean> => {
    try {
      const found = find();
      await found?.close();
      return found !== undefined;
    } catch {
      return false;
    }
  };
  for (const token of [CM, MAD, XRC]) await ended(() => container.madeOf<Closing>(token));
  if (await ended(() => container.madeOf(DEVICE) ?? container.ownOf(DEVICE))) return;
  // The creation of the device, which would have closed its port, has failed.
  await ended(() => container.madeOf(PACKET_PORT) ?? container.ownOf(PACKET_PORT));
}

/** Modules that wrap or replace the provider's own, innermost first. */
function modulesOver(provider: ConfiguredProvider, modules: ModuleSet): ConfiguredModule[] {
  return [...provider.modules, ...MODULE_KINDS.flatMap((kind) => modules[kind] ?? [])];
}

function layerOf(module: ConfiguredModule): Layer {
  return { token: MODULE_TOKENS[module.meta.kind], part: module, title: titleOf(module.meta) };
}

/** Leaves out modules that observe packets: the first opening decides on those. */
const COMPARED = MODULE_KINDS.filter((kind) => kind !== 'port');

/** Checks that an open device has the requested modules, if any are requested. */
function checkModules(
  provider: ConfiguredProvider,
  present: readonly ConfiguredModule[],
  wanted: readonly ConfiguredModule[],
): void {
  for (const kind of COMPARED) {
    const [mine, theirs] = [wanted, present].map((list) =>
      list.filter(({ meta }) => meta.kind === kind),
    ) as [ConfiguredModule[], ConfiguredModule[]];
    if (mine.length === 0) continue;
    if (mine.length === theirs.length && mine.every((each, i) => each === theirs[i])) continue;
    const names = (list: readonly ConfiguredModule[]): string =>
      list.map(({ meta }) => titleOf(meta)).join(' under ');
    throw new DatError('DAT_INVALID_STATE', {
      subtype: 'DAT_INVALID_STATE_IA_IN_USE',
      operation: 'openIa',
      message:
        `device ${show(provider.instance.deviceKey)} of ${titleOf(provider.meta)} is open with ` +
        `${names(theirs) || 'its own module'} for ${kind}; it cannot take another ${names(mine)}`,
      hint: 'close its interface adapters first, or pass the same plugin object',
      value: mine.at(-1),
    });
  }
}
