/** Resolves host names to addresses, with the system's resolver. */
import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { FlowError } from 'dapl/flow';

/**
 * Digits and dots: no host name looks like this (RFC 3696, section 2), so it is meant as an
 * address.
 */
const DIGITS_AND_DOTS = /^[\d.]+$/;

/**
 * The address of a host: the first that the system returns, IPv4 before IPv6.
 * @param host a name, or an address in text, which is returned as it is
 * @param family 4 or 6; undefined for either
 * @throws FlowError DAT_INVALID_ADDRESS
 */
export async function addressOf(
  operation: string,
  host: string,
  family: 4 | 6 | undefined,
): Promise<string> {
  const version = isIP(host);
  if (version !== 0 && (family === undefined || family === version)) return host;
  try {
    if (version !== 0) throw new Error(`it is an IPv${version} address`);
    if (DIGITS_AND_DOTS.test(host))
      throw new Error('an IPv4 address has four numbers from 0 to 255 without leading zeros');
    const { address } = await lookup(host, { family: family ?? 0, order: 'ipv4first' });
    return address;
  } catch (cause) {
    const wanted = family === undefined ? 'address' : `IPv${family} address`;
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new FlowError('DAT_INVALID_ADDRESS', {
      operation,
      message: `${JSON.stringify(host)} has no ${wanted}: ${why}`,
      value: host,
      cause,
    });
  }
}
