/** Why a device does not open: the file behind it says more than the errno does. */
import { getSystemErrorName } from 'node:util';
import { SpiError } from '../../core/spi/index.js';
import { deviceNodeRefused, userDriverMissing } from './errors.js';
import { deviceNode } from './machine.js';
import type { RdmaDevice } from './system.js';

const DIRECTORY = '/dev/infiniband';

/** @param errno of ibv_open_device, of either sign; ENODEV where ibv_get_device_list has none */
export function openingError(device: RdmaDevice, errno: number): SpiError {
  const code = getSystemErrorName(-Math.abs(errno));
  const node = deviceNode(`${DIRECTORY}/${device.uverbs ?? 'uverbs0'}`, 'ib_uverbs');
  if (device.uverbs === undefined || node.facts === undefined) {
    const { path, module, user, groups } = node;
    return deviceNodeRefused('ENOENT', { path, module, user, groups });
  }
  if (code === 'ENODEV') return userDriverMissing(device.name);
  return deviceNodeRefused(code, node);
}

/** Why an event channel of the connection manager does not open. */
export function cmOpeningError(errno: number): SpiError {
  const code = getSystemErrorName(-Math.abs(errno));
  const node = deviceNode(`${DIRECTORY}/rdma_cm`, 'rdma_ucm');
  if (code === 'ENODEV' || code === 'ENOENT') {
    const { path, module, user, groups } = node;
    return deviceNodeRefused('ENOENT', { path, module, user, groups });
  }
  return deviceNodeRefused(code, node);
}
