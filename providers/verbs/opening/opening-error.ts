/** Errors of opening a device: the file behind it tells more than the errno does. */
import { accessSync, constants } from 'node:fs';
import { SpiError } from '../../../core/spi/index.js';
import { deviceNodeRefused, userDriverMissing } from '../system/errors.js';
import { deviceNode } from '../system/machine.js';
import type { RdmaDevice } from '../system/system.js';

const DIRECTORY = '/dev/infiniband';

/**
 * libibverbs says ENOENT of a file that it may not open, and of one that is not there: the file
 * itself is asked.
 * @param cause says all there is to say when the file is not the reason
 */
export function openingError(device: RdmaDevice, cause: SpiError): SpiError {
  const refused = refusedFile(device.uverbs ?? 'uverbs0', 'ib_uverbs', cause);
  if (refused !== undefined) return refused;
  return cause.code === 'ENODEV' ? userDriverMissing(device.name) : cause;
}

/** Why an event channel of the connection manager does not open. */
export function cmOpeningError(cause: SpiError): SpiError {
  return refusedFile('rdma_cm', 'rdma_ucm', cause) ?? cause;
}

/** @returns undefined when the file opens, as far as permissions go */
function refusedFile(name: string, module: string, cause: SpiError): SpiError | undefined {
  const path = `${DIRECTORY}/${name}`;
  try {
    accessSync(path, constants.R_OK | constants.W_OK);
    return undefined;
  } catch (error) {
    const { code = 'EIO' } = error as NodeJS.ErrnoException;
    const refusal = deviceNodeRefused(code, deviceNode(path, module));
    return new SpiError(refusal.code, refusal.message, { cause });
  }
}
