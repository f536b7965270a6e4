/** Lines of dat.conf for verbs: `"mlx5_0 1"`, `"eth0 0"`, `"10.0.0.1 polling=adaptive"`. */
import { einval } from '../../../core/spi/errors/einval.js';
import { isIP } from 'node:net';
import { integerOption, readIaParams } from '../../../core/spi/index.js';
import { checkOptions, type VerbsOptions } from './options.js';

const OPTIONS = ['gidIndex', 'polling'];

/**
 * The options that an ia_params field stands for, as OpenFabrics writes it: a device, an interface
 * or an address, then perhaps a port, where 0 is any; then options.
 * @throws SpiError('EINVAL')
 */
export function optionsOf(iaParams: string): VerbsOptions {
  const params = readIaParams(iaParams, OPTIONS);
  const [where, portText = '0', ...rest] = params.words;
  if (where === undefined || rest.length > 0) {
    const expected =
      'a device, an interface or an address, and perhaps a port: "mlx5_0 1", "eth0 0"';
    throw einval('ia_params', iaParams, expected);
  }
  if (!/^\d{1,3}$/.test(portText)) throw einval('port', portText, 'a number, 0 for any');
  const port = Number(portText);
  const gidIndex = integerOption(params, 'gidIndex');
  const polling = params.options.polling;
  return checkOptions({
    ...(isIP(where) === 0 ? { device: where } : { address: where }),
    ...(port !== 0 && { port }),
    ...(gidIndex !== undefined && { gidIndex }),
    ...(polling !== undefined && { polling }),
  });
}
