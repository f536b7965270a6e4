/** Finds the umad device of a port of an RDMA device, in sysfs. */
import { join } from 'node:path';
import { SpiError, token } from '../../../core/spi/index.js';
import { namesIn, textOf } from '../system/sysfs.js';

const SYSFS = '/sys/class/infiniband_mad';
const DEVICES = '/dev/infiniband';

/** Finds the path of the character device. @throws SpiError when there is none */
export const UMAD_PATH = token<() => string>('verbs/umad-path');

/**
 * The path of the character device.
 * @throws SpiError('EOPNOTSUPP') when there is none, with what may help
 */
export function umadPathOf(deviceName: string, port: number, sysfs = SYSFS): string {
  const numbered = namesIn(sysfs).find((name) => {
    if (!name.startsWith('umad')) return false;
    const [device, number] = [
      textOf(join(sysfs, name, 'ibdev')),
      textOf(join(sysfs, name, 'port')),
    ];
    return device === deviceName && Number(number) === port;
  });
  if (numbered !== undefined) return join(DEVICES, numbered);
  throw new SpiError(
    'EOPNOTSUPP',
    `port ${port} of ${deviceName} has no management datagrams: ${sysfs} does not list it ` +
      '(load the kernel module with `modprobe ib_umad`; iWARP devices have none)',
  );
}
