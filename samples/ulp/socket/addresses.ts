/** Addresses: resolves hosts, and converts addresses to the form that sockets show. */
import { type LookupAddress, lookup as systemLookup } from 'node:dns';
import { isIP, isIPv6 } from 'node:net';
import type { ConnectTarget } from './arguments.js';
import type { StreamAddress } from './stream-transport.js';

/** The result of `address()`, as in node:net. */
export interface SocketAddressInfo {
  readonly address: string;
  readonly family: 'IPv4' | 'IPv6';
  readonly port: number;
}

export function familyOfAddress(address: string): 'IPv4' | 'IPv6' {
  return isIPv6(address) ? 'IPv6' : 'IPv4';
}

export function addressInfo({ address, port }: StreamAddress): SocketAddressInfo {
  return { address, family: familyOfAddress(address), port };
}

/** The callback for `lookup` events, called once for each address. */
export type OnLookup = (
  error: Error | null,
  address: string | undefined,
  family: number | undefined,
  host: string,
) => void;

/** True for a host that stands for all addresses of a machine. */
export function isWildcard(host: string): boolean {
  return host === '0.0.0.0' || host === '::';
}

/**
 * All addresses of a host, in the order in which to try them. @throws errors of the resolver, as a
 * rejection: ENOTFOUND, EAI_AGAIN
 */
export function addressesOf(
  { host, family, hints, lookup }: Pick<ConnectTarget, 'host' | 'family' | 'hints' | 'lookup'>,
  onLookup: OnLookup,
): Promise<readonly string[]> {
  if (isIP(host) !== 0) return Promise.resolve([host]);
  const resolver = lookup ?? systemLookup;
  return new Promise((resolve, reject) => {
    const options = { family, all: true, ...(hints === undefined ? {} : { hints }) } as const;
    resolver(host, options, (error, found, ofFamily) => {
      if (error) {
        onLookup(error, undefined, undefined, host);
        reject(error);
        return;
      }
      const all: LookupAddress[] =
        typeof found === 'string' ? [{ address: found, family: ofFamily ?? isIP(found) }] : found;
      for (const each of all) onLookup(null, each.address, each.family, host);
      resolve(all.map(({ address }) => address));
    });
  });
}
