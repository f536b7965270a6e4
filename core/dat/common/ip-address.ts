/** IP addresses as parameters, and the own address that reaches each. */
import { checkFields, checkOptions, checkValue } from '../../errors/guards.js';
import { type Kinds, kindOf, show } from '../../spi/checks/index.js';
import { DatError } from '../../errors/index.js';
import { type Device, type Gid, gidFromIp, ipFromGid, isIpv4Gid } from '../../spi/index.js';

const ADDRESS_TEXT = kindOf<string>(
  'the text of an IP address',
  (address) => typeof address === 'string',
);

/** @throws DatError DAT_INVALID_PARAMETER, DAT_INVALID_ADDRESS */
export function checkIp(operation: string, address: unknown): Gid {
  checkValue(operation, 'address', address, ADDRESS_TEXT);
  try {
    return gidFromIp(address);
  } catch (cause) {
    const hint = 'names are not resolved: pass an IPv4 or IPv6 address';
    throw malformedAddress(operation, address, 'is not an IP address', hint, cause);
  }
}

/**
 * Checks options with an address; the address before the other values.
 * @throws DatError DAT_INVALID_PARAMETER, DAT_INVALID_ADDRESS
 */
export function checkAddressed<T extends { readonly address: string }>(
  operation: string,
  options: T,
  kinds: Kinds<T>,
): Gid {
  checkOptions(operation, options, Object.keys(kinds));
  const gid = checkIp(operation, options.address);
  checkFields(operation, options, kinds);
  return gid;
}

/** The error for text that is no address. */
export function malformedAddress(
  operation: string,
  address: string,
  what: string,
  hint: string,
  cause?: unknown,
): DatError {
  return new DatError('DAT_INVALID_ADDRESS', {
    subtype: 'DAT_INVALID_ADDRESS_MALFORMED',
    operation,
    message: `${show(address)} ${what}`,
    hint,
    value: address,
    cause,
  });
}

/**
 * Index of the device's address that reaches that peer: the first of its family.
 * @throws DatError DAT_INVALID_ADDRESS / DAT_INVALID_ADDRESS_UNREACHABLE
 */
export function sourceIndex(operation: string, { gids }: Device, remote: Gid): number {
  const isIpv4 = isIpv4Gid(remote);
  const index = gids.findIndex((gid) => isIpv4Gid(gid) === isIpv4);
  if (index >= 0) return index;
  const address = ipFromGid(remote);
  const [family, other] = isIpv4 ? ['IPv4', 'IPv6'] : ['IPv6', 'IPv4'];
  throw new DatError('DAT_INVALID_ADDRESS', {
    subtype: 'DAT_INVALID_ADDRESS_UNREACHABLE',
    operation,
    message: `the adapter has no ${family} address to reach ${address} from`,
    hint: `open it with an ${family} address too, or name an ${other} address`,
    value: address,
  });
}
