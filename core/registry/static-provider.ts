/** A line of dat.conf as a provider: its module is loaded on first opening. */
import { show } from '../spi/checks/index.js';
import { DatError } from '../errors/index.js';
import { type ConfiguredPlugin, type DatProviderInit } from '../spi/index.js';
import { checkPlugin } from './checks.js';
import type { DatConfEntry } from './dat-conf.js';
import type { ProviderInfo } from './provider-info.js';

/**
 * Loads a provider's module: returns the result of `import()` of the library. This file does not
 * touch files or packages itself.
 * @param libPath as the line has it
 */
export type ProviderLoader = (libPath: string) => Promise<unknown>;

export class StaticProvider {
  readonly info: ProviderInfo;
  private loading: Promise<ConfiguredPlugin<'provider'>> | undefined = undefined;

  constructor(
    private readonly entry: DatConfEntry,
    private readonly load: ProviderLoader,
    /** The error for ia_params that the provider refuses; default: as for a missing provider. */
    private readonly refused?: (message: string, cause: unknown) => DatError,
  ) {
    const { iaName, versionMajor, versionMinor, isThreadSafe, libPath, iaParams } = entry;
    const version = { versionMajor, versionMinor };
    this.info = { iaName, ...version, isThreadSafe, origin: 'dat.conf', libPath, iaParams };
  }

  /**
   * The configured provider; loaded once, and again after a failure.
   * @throws DatError DAT_PROVIDER_NOT_FOUND with the step that failed
   */
  plugin(): Promise<ConfiguredPlugin<'provider'>> {
    this.loading ??= this.make().catch((error: unknown) => {
      this.loading = undefined;
      throw error;
    });
    return this.loading;
  }

  private async make(): Promise<ConfiguredPlugin<'provider'>> {
    const { libPath, iaParams } = this.entry;
    const module: unknown = await this.step(`cannot load ${libPath}`, () => this.load(libPath));
    const init = initOf(module);
    if (init === undefined) throw this.failed(`${libPath} exports no function datProviderInit`);
    const problem = `${libPath} refuses its ia_params ${show(iaParams)}`;
    const plugin: unknown = await this.step(
      problem,
      async () => init(this.entry, iaParams),
      this.refused,
    );
    return checkPlugin('openIa', plugin, 'provider');
  }

  private async step<T>(
    problem: string,
    run: () => Promise<T>,
    fail = (message: string, cause: unknown): DatError => this.failed(message, cause),
  ): Promise<T> {
    try {
      return await run();
    } catch (error) {
      throw fail(`${problem}: ${textOf(error)}`, error);
    }
  }

  private failed(message: string, cause?: unknown): DatError {
    return new DatError('DAT_PROVIDER_NOT_FOUND', {
      subtype: 'DAT_NAME_NOT_REGISTERED',
      operation: 'openIa',
      message: `${show(this.entry.iaName)}: ${message}`,
      value: this.entry.libPath,
      ...(cause !== undefined && { cause }),
    });
  }
}

function initOf(module: unknown): DatProviderInit | undefined {
  if (typeof module !== 'object' || module === null) return undefined;
  const init: unknown = (module as { readonly datProviderInit?: unknown }).datProviderInit;
  return typeof init === 'function' ? (init as DatProviderInit) : undefined;
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
