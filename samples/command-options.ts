/** Options of the samples: the provider, and integers within limits. */
import { InvalidArgumentError, Option } from 'commander';
import { softroce, type SoftroceOptions } from 'dapl/providers/softroce';
import { verbs } from 'dapl/providers/verbs';
import type { ConfiguredPlugin } from 'dapl/spi';

const PROVIDERS = ['softroce', 'verbs'] as const;
export type ProviderName = (typeof PROVIDERS)[number];

/** `--provider softroce`, or `verbs` for RDMA devices. */
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

/** Parses an option that is an integer from `min` to `max`. */
export function integer(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (Number.isInteger(value) && value >= min && value <= max) return value;
    throw new InvalidArgumentError(`an integer from ${min} to ${max}`);
  };
}
