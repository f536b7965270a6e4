/** Lines of dat.conf for mock: `"10.0.0.1"`, `"10.0.0.1 fabric=lab seed=42 mtuBytes=4096"`. */
import { checkValue, integer, optional, show, TEXT } from '../../core/spi/checks/index.js';
import { einval } from '../../core/spi/errors/einval.js';
import { integerOption, readIaParams, SpiError } from '../../core/spi/index.js';
import { Fabric } from './fabric.js';
import type { MockOptions } from './index.js';

const OPTIONS = ['fabric', 'seed', 'mtuBytes'];
const SEED = optional(integer(0, Number.MAX_SAFE_INTEGER));
const DEFAULT_FABRIC = 'default';

interface NamedFabric {
  readonly fabric: Fabric;
  readonly seed: number;
}
const fabrics = new Map<string, NamedFabric>();

/**
 * The fabric of this process that lines of dat.conf call by a name. It runs by itself
 * (`autoRun: true`) and is made by the first line that asks.
 * @param seed of its making; default 1
 * @throws SpiError('EINVAL') for a seed that is none, and when it has been made with another seed
 */
export function namedFabric(name: string, seed?: number): Fabric {
  checkValue('name', name, TEXT, einval);
  checkValue('seed', seed, SEED, einval);
  const present = fabrics.get(name);
  if (present === undefined) {
    const made = { fabric: new Fabric({ seed: seed ?? 1, autoRun: true }), seed: seed ?? 1 };
    fabrics.set(name, made);
    return made.fabric;
  }
  if (seed === undefined || seed === present.seed) return present.fabric;
  throw new SpiError(
    'EINVAL',
    `fabric ${show(name)} was made with seed ${present.seed}, not ${seed}`,
  );
}

/**
 * The options that an ia_params field stands for: an address, perhaps a port number (0 or 1), then
 * options.
 * @throws SpiError('EINVAL')
 */
export function optionsOf(iaParams: string): MockOptions {
  const params = readIaParams(iaParams, OPTIONS);
  const [address, portNumber = '0', ...rest] = params.words;
  if (address === undefined || rest.length > 0 || !['0', '1'].includes(portNumber)) {
    const expected = 'an address and perhaps port number 0 or 1, such as "10.0.0.1 fabric=lab"';
    throw einval('ia_params', iaParams, expected);
  }
  const mtuBytes = integerOption(params, 'mtuBytes');
  const seed = integerOption(params, 'seed');
  return {
    fabric: namedFabric(params.options.fabric ?? DEFAULT_FABRIC, seed),
    address,
    ...(mtuBytes !== undefined && { mtuBytes }),
  };
}
