/**
 * The option that selects a sample's provider: `--provider softroce`, or `verbs` for RDMA devices.
 */
import { Option } from 'commander';
import { softroce, type SoftroceOptions } from 'dapl/providers/softroce';
import { verbs } from 'dapl/providers/verbs';
import type { ConfiguredPlugin } from 'dapl/spi';

const PROVIDERS = ['softroce', 'verbs'] as const;
export type ProviderName = (typeof PROVIDERS)[number];

export function providerOption(): Option {
  return new Option('--provider <name>', 'softroce needs no hardware, verbs uses an RDMA device')
    .choices(PROVIDERS)
    .default('softroce');
}

/** @param port the socket implementation of softroce */
export function providerAt(
  name: ProviderName,
  address: string,
  port: NonNullable<SoftroceOptions['port']> = 'auto',
): ConfiguredPlugin<'provider'> {
  return name === 'verbs' ? verbs({ address }) : softroce({ addresses: [address], port });
}
