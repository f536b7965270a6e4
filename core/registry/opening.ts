/** Opens an interface adapter of a provider (dat_ia_open): options, modules, device. */
import type { DeviceLease } from '../dat/common/adapter-state.js';
import { checkFields, checkOptions } from '../errors/guards.js';
import { FUNCTION, integer, OBJECT, optional } from '../spi/checks/index.js';
import { Ia } from '../dat/ia/ia.js';
import { traceTo } from '../dat/common/trace.js';
import {
  type ConfiguredModule,
  type ConfiguredProvider,
  type ModuleClass,
  type ModuleKind,
  silentLogger,
} from '../spi/index.js';
import { LOGGER_KIND, loggerOf, type LogMethods } from './any-logger.js';
import { checkDevice, checkPlugin, checkRequirements } from './checks.js';
import { DeviceTable, giveBack, MODULE_KINDS, type ModuleSet } from './device-table.js';

/** Additions of a platform to the language; the main entry hands in Node's. */
export interface Platform {
  /** The logger of adapters that are opened without one. */
  readonly defaultLogger: () => LogMethods;
  /** Resolves when loggers can write what they were given; undefined if they can now. */
  readonly loggersReady: () => Promise<void> | undefined;
  /** Bytes of the longest view of memory. */
  readonly maxViewBytes: number;
}

/** Options of `openIa`. */
export interface OpenIaOptions {
  /**
   * Modules that replace or wrap the provider's own: configured plugins, classes with `@plugin`,
   * or names of registered ones.
   */
  readonly modules?: {
    readonly [K in ModuleKind]?: ConfiguredModule<K> | ModuleClass<K> | string;
  };
  /**
   * Default: by the environment variable DAPL_LOG; silent without it. One of `createLogger` or
   * `fromWinston`, or any object with `debug`, `info`, `warn` and `error`, such as `console`. It
   * logs at debug only if its `isDebugEnabled` returns true.
   */
  readonly logger?: LogMethods;
  /**
   * Wraps the provider, whatever name or package it came by: `(provider) => metrics(provider,
   * sink)`. An open device can be opened again with the same modules only. So use it for the first
   * opening, or return the same result again.
   */
  readonly decorate?: (provider: ConfiguredProvider) => ConfiguredProvider;
  /** Events that `ia.asyncEvd` can queue, 1 to 1,048,576; default 64. */
  readonly asyncEvdQlen?: number;
  /** Time limit of `ia.close()` in milliseconds, 1 to 3,600,000; default 5000. */
  readonly closeTimeoutMs?: number;
}

const ASYNC_QLEN = 64;
const CLOSE_TIMEOUT_MS = 5000;
const HOUR_MS = 3_600_000;
const OPEN_OPTIONS = {
  modules: optional(OBJECT),
  logger: optional(LOGGER_KIND),
  decorate: optional(FUNCTION),
  asyncEvdQlen: optional(integer(1, 2 ** 20)),
  closeTimeoutMs: optional(integer(1, HOUR_MS)),
};

/** Open devices of this process. */
const devices = new DeviceTable();

export interface Opening {
  readonly provider: ConfiguredProvider;
  /** Name of the adapter in the registry. */
  readonly name: string;
  readonly modules: ModuleSet;
  readonly options: OpenIaOptions;
  readonly platform: Platform | undefined;
  readonly onClosed: () => void;
}

/** @throws DatError DAT_INVALID_PARAMETER */
export function checkOpenOptions(options: OpenIaOptions): void {
  checkFields('openIa', options, OPEN_OPTIONS);
  if (options.modules !== undefined) checkOptions('openIa', options.modules, MODULE_KINDS);
}

/** @throws DatError as `Registry.openIa`; nothing stays open then */
export async function open(opening: Opening): Promise<Ia> {
  const { provider, name, modules, options, platform, onClosed } = opening;
  const {
    logger: given = platform?.defaultLogger() ?? silentLogger,
    asyncEvdQlen = ASYNC_QLEN,
    closeTimeoutMs = CLOSE_TIMEOUT_MS,
  } = options;
  const logger = loggerOf(given);
  // What this adapter logs stands among what the program itself prints, in the order of time.
  await platform?.loggersReady();
  for (const module of provider.modules) checkPlugin('openIa', module);
  const used = [...provider.modules, ...MODULE_KINDS.flatMap((kind) => modules[kind] ?? [])];
  const metas = used.map(({ meta }) => meta);
  checkRequirements('openIa', [provider.meta, ...metas]);
  const device = await devices.acquire(provider, modules, logger);
  try {
    const services = device.services(logger);
    checkDevice(metas, services.device);
    const { maxMemoryRegionBytes } = services.device.attributes;
    const maxRegionBytes = Math.min(maxMemoryRegionBytes, platform?.maxViewBytes ?? Infinity);
    const context = { ...services, trace: traceTo(logger), maxRegionBytes };
    const lease: DeviceLease = {
      onEvent: (listener) => device.onEvent(listener),
      mad: () => device.mad(),
      release: () => {
        const release = device.release();
        const done = (): void => {
          release.done();
          onClosed();
        };
        return { ...release, done };
      },
    };
    return new Ia({ context, lease, providerName: name, asyncEvdQlen, closeTimeoutMs });
  } catch (error) {
    await giveBack(device);
    throw error;
  }
}
