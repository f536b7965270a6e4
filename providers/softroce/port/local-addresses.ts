/** Resolves names of network interfaces to addresses of this machine. */
import { isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import { checkValue } from '../../../core/spi/checks/index.js';
import { einval } from '../../../core/spi/errors/einval.js';
import { PORT_OPTIONS } from '../../hca/common/port-options.js';

/**
 * Addresses in text: of an interface, its own, IPv4 first, without those that only mean something
 * on a link. What is no interface of this machine is left as it is where it may be an address.
 * @param option that holds them
 * @throws SpiError('EINVAL') for an interface that is not there, or has no address; for more
 * addresses than a port takes
 */
export function localAddresses(option: string, addresses: readonly string[]): string[] {
  const twice = addresses.find((where, i) => addresses.indexOf(where) !== i);
  if (twice !== undefined) throw einval(option, twice, 'given once');
  const found = addresses.flatMap((where) => {
    // Asking for the interfaces costs more than all else here.
    if (isIP(where) !== 0) return [where];
    const interfaces = networkInterfaces();
    const present = Object.hasOwn(interfaces, where) ? interfaces[where] : undefined;
    if (present === undefined) {
      // An address has one of these; of another kind of value the packet port says what it is.
      if (typeof where !== 'string' || /[.:]/.test(where)) return [where];
      const known = Object.keys(interfaces).join(', ');
      throw einval(option, where, `an address, or an interface: one of ${known}`);
    }
    const usable = present
      .filter(({ address }) => !/^fe80:/i.test(address))
      .sort((a, b) => a.family.localeCompare(b.family));
    if (usable.length === 0) throw einval(option, where, 'an interface that has an address');
    return usable.map(({ address }) => address);
  });
  const distinct = [...new Set(found)];
  checkValue('addresses', distinct, PORT_OPTIONS.addresses, einval);
  return distinct;
}
