/** Lines of dat.conf for softroce: `"eth0"`, `"10.0.0.1,10.0.0.2 udpPort=4791"`. */
import { networkInterfaces } from 'node:os';
import { integerOption, readIaParams, SpiError } from '../../core/spi/index.js';
import type { SoftroceOptions } from './index.js';
import { ICRC_CHECKS } from './port-options.js';

const OPTIONS = ['udpPort', 'mtuBytes', 'port', 'icrcCheck'];
const PORTS = ['auto', 'native', 'dgram'] as const;
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
    throw refused(
      iaParams,
      'an interface or addresses, such as "eth0" or "127.0.0.1 udpPort=4791"',
    );
  }
  if (!['0', '1'].includes(portNumber)) throw refused(portNumber, 'port number 0 or 1');
  const udpPort = integerOption(params, 'udpPort');
  const mtuBytes = integerOption(params, 'mtuBytes');
  const port = oneOf('port', PORTS, params.options.get('port'));
  const icrcCheck = oneOf('icrcCheck', ICRC_CHECKS, params.options.get('icrcCheck'));
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
    throw refused(where, `an address, or an interface: one of ${known}`);
  }
  const usable = present
    .filter(({ address }) => !/^fe80:/i.test(address))
    .sort((a, b) => a.family.localeCompare(b.family));
  if (usable.length === 0) throw refused(where, 'an interface that has an address');
  return usable.slice(0, MAX_ADDRESSES).map(({ address }) => address);
}

function oneOf<T extends string>(
  option: string,
  values: readonly T[],
  text: string | undefined,
): T | undefined {
  if (text === undefined) return undefined;
  const value = values.find((name) => name === text);
  if (value !== undefined) return value;
  throw refused(`${option}=${text}`, values.map((name) => `${option}=${name}`).join(' or '));
}

function refused(value: string, expected: string): SpiError {
  return new SpiError('EINVAL', `${JSON.stringify(value)} must be ${expected}`);
}
