/** Which umad device belongs to a port of an RDMA device: sysfs says. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { SpiError } from '../../core/spi/index.js';

const SYSFS = '/sys/class/infiniband_mad';
const DEVICES = '/dev/infiniband';

/**
 * The path of the character device.
 * @throws SpiError('EOPNOTSUPP') when there is none, with what may help
 */
export function umadPathOf(deviceName: string, port: number, sysfs = SYSFS): string {
  const numbered = namesIn(sysfs).find((name) => {
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

function namesIn(sysfs: string): string[] {
  try {
    return readdirSync(sysfs).filter((name) => name.startsWith('umad'));
  } catch {
    return [];
  }
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    return '';
  }
}
