/** DAPL_PCAP: the file that the packets of all devices of this process go to. */
import type { ConfiguredPlugin } from '../../core/spi/index.js';
import { capture } from '../pcap/index.js';

/** @returns the provider itself unless the variable is set */
export function captureIfAsked(
  provider: ConfiguredPlugin<'provider'>,
): ConfiguredPlugin<'provider'> {
  const file = process.env['DAPL_PCAP'];
  return file === undefined || file === '' ? provider : capture(provider, { file });
}
