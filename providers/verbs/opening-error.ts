/** Why a device does not open: the file behind it says more than the errno does. */
import { SpiError } from '../../core/spi/index.js';
import { deviceNodeRefused, userDriverMissing } from './errors.js';
import { deviceNode } from './machine.js';
import type { RdmaDevice } from './system.js';

const DIRECTORY = '/dev/infiniband';

/**
 * @param code of ibv_open_device; ENODEV where ibv_get_device_list does not have it
 * @param cause what says all there is to say when the file does not
 */
export function openingError(device: RdmaDevice, code: string, cause: SpiError): SpiError {
  const { uverbs } = device;
  if (uverbs === undefined) return refusedFile('uverbs0', 'ib_uverbs', 'ENOENT', cause);
  if (code === 'ENODEV' && isThere(uverbs)) return userDriverMissing(device.name);
  return refusedFile(uverbs, 'ib_uverbs', code, cause);
}

/** Why an event channel of the connection manager does not open. */
export function cmOpeningError(cause: SpiError): SpiError {
  return refusedFile('rdma_cm', 'rdma_ucm', cause.code, cause);
}

const REFUSALS = ['EACCES', 'EPERM', 'ENOENT', 'ENODEV'];

function refusedFile(name: string, module: string, code: string, cause: SpiError): SpiError {
  const node = deviceNode(`${DIRECTORY}/${name}`, module);
  if (!REFUSALS.includes(code) && node.facts !== undefined) return cause;
  const { code: given, message } = deviceNodeRefused(code, node);
  return new SpiError(given, message, { cause });
}

function isThere(name: string): boolean {
  return deviceNode(`${DIRECTORY}/${name}`, '').facts !== undefined;
}
