/** IP addresses in text, as parameters. */
import { checkFields, checkOptions, checkValue } from '../../errors/guards.js';
import { DatError } from '../../errors/index.js';
import { kindOf, type Kinds } from '../../spi/checks/index.js';
import { type Gid, gidFromIp } from '../../spi/index.js';

const ADDRESS_TEXT = kindOf<string>(
  'the text of an IP address',
  (address) => typeof address === 'string',
);

/** @throws DatError DAT_INVALID_PARAMETER, DAT_INVALID_ADDRESS */
export function checkIp(operation: string, position: number, address: unknown): Gid {
  checkValue(operation, position, 'address', address, ADDRESS_TEXT);
  try {
    return gidFromIp(address);
  } catch (cause) {
    const hint = 'names are not resolved: pass an IPv4 or IPv6 address';
    throw malformedAddress(operation, address, 'is not an IP address', hint, cause);
  }
}

/**
 * Options with an address, which is looked at before their other values.
 * @param position of the address
 * @throws DatError DAT_INVALID_PARAMETER, DAT_INVALID_ADDRESS
 */
export function checkAddressed<T extends { readonly address: string }>(
  operation: string,
  position: number,
  options: T,
  kinds: Kinds<T>,
): Gid {
  checkOptions(operation, 1, options, Object.keys(kinds));
  const gid = checkIp(operation, position, options.address);
  checkFields(operation, 1, options, kinds);
  return gid;
}

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
    message: `${JSON.stringify(address)} ${what}`,
    hint,
    value: address,
    cause,
  });
}
