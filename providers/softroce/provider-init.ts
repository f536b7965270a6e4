/** Lines of dat.conf for softroce: `"eth0"`, `"10.0.0.1,10.0.0.2 udpPort=4791"`. */
import { checkValue, oneOf, optional } from '../../core/spi/checks/index.js';
import { einval } from '../../core/spi/errors/einval.js';
import { integerOption, readIaParams } from '../../core/spi/index.js';
import type { SoftroceOptions } from './index.js';
import { localAddresses } from './port/local-addresses.js';
import { ICRC_CHECK, SOCKET_PORT } from './port/port-options.js';

const OPTIONS = ['udpPort', 'mtuBytes', 'port', 'icrcCheck', 'shm', 'shared'];
const ON_OR_OFF = optional(oneOf(['true', 'false'] as const));
const PORT_NUMBER = oneOf(['0', '1']);

/**
 * The options that an ia_params field stands for: interfaces or local addresses, parted by
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
  const port = params.options.port;
  const icrcCheck = params.options.icrcCheck;
  checkValue('port', port, SOCKET_PORT, einval);
  checkValue('icrcCheck', icrcCheck, ICRC_CHECK, einval);
  const shm = params.options.shm;
  checkValue('shm', shm, ON_OR_OFF, einval);
  const shared = params.options.shared;
  checkValue('shared', shared, ON_OR_OFF, einval);
  return {
    addresses: localAddresses('ia_params', where.split(',').filter(Boolean)),
    ...(udpPort !== undefined && { udpPort }),
    ...(mtuBytes !== undefined && { mtuBytes }),
    ...(port !== undefined && { port }),
    ...(icrcCheck !== undefined && { icrcCheck }),
    ...(shm !== undefined && { shm: shm === 'true' }),
    ...(shared !== undefined && { shared: shared === 'true' }),
  };
}
