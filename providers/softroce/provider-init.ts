/** Lines of dat.conf for softroce: `"eth0"`, `"10.0.0.1,10.0.0.2 udpPort=4791"`. */
import { checkValue, oneOf } from '../../core/spi/checks/index.js';
import { einval } from '../../core/spi/einval.js';
import { networkInterfaces } from 'node:os';
import { integerOption, readIaParams } from '../../core/spi/index.js';
import type { SoftroceOptions } from './index.js';
import { ICRC_CHECK, SOCKET_PORT } from './port-options.js';

const OPTIONS = ['udpPort', 'mtuBytes', 'port', 'icrcCheck'];
const PORT_NUMBER = oneOf(['0', '1']);
const MAX_ADDRESSES = 64;

/**
 * The options that an ia_params field stands for: an interface, or local addresses parted by
 * commas; then, as OpenFabrics writes it, perhaps a port number, which is 0 or 1 here; then
 * options.
 * @throws SpiError('EINVAL')
 */
export function optionsOf(iaParams: string): SoftroceOptions {
  const params = readIaParams(iaParams, OPTIONS);
  const [where, portNumber = '0', ...rest] = params.words;
  if (where === undefined || rest.length > 0) {
    const expected = 'an interface or addresses, such as "eth0" or "127.0.0.1 udpPort=4791"';
    throw einval('ia_params', iaParams, expected);
  }
  checkValue('the port number', portNumber, PORT_NUMBER, einval);
  const udpPort = integerOption(params, 'udpPort');
  const mtuBytes = integerOption(params, 'mtuBytes');
  const port = params.options.get('port');
  const icrcCheck = params.options.get('icrcCheck');
  checkValue('port', port, SOCKET_PORT, einval);
  checkValue('icrcCheck', icrcCheck, ICRC_CHECK, einval);
  return {
    addresses: addressesOf(where),
    ...(udpPort !== undefined && { udpPort }),
    ...(mtuBytes !== undefined && { mtuBytes }),
    ...(port !== undefined && { port }),
    ...(icrcCheck !== undefined && { icrcCheck }),
  };
}

/** Of an interface: its addresses, IPv4 first, without those that only mean something on a link. */
function addressesOf(where: string): string[] {
  const interfaces = networkInterfaces();
  const present = interfaces[where];
  if (present === undefined) {
    if (/[.:]/.test(where)) return where.split(',').filter(Boolean);
    const known = Object.keys(interfaces).join(', ');
    throw einval('ia_params', where, `an address, or an interface: one of ${known}`);
  }
  const usable = present
    .filter(({ address }) => !/^fe80:/i.test(address))
    .sort((a, b) => a.family.localeCompare(b.family));
  if (usable.length === 0) throw einval('ia_params', where, 'an interface that has an address');
  return usable.slice(0, MAX_ADDRESSES).map(({ address }) => address);
}
