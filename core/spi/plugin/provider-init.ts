/**
 * How a provider package is opened from a line of dat.conf: it exports a function of this type
 * under the name `datProviderInit` (DAT's dat_provider_init).
 */
import type { ConfiguredPlugin } from './define-plugin.js';

/** The fields of the line. */
export interface ProviderInitInfo {
  readonly iaName: string;
  readonly versionMajor: number;
  readonly versionMinor: number;
  readonly isThreadSafe: boolean;
  readonly platformParams: string;
}

/**
 * @param iaParams the line's seventh field; `readIaParams` parses it
 * @throws SpiError('EINVAL') that names the parameter and what it may be
 */
export type DatProviderInit = (
  info: ProviderInitInfo,
  iaParams: string,
) => ConfiguredPlugin<'provider'>;
