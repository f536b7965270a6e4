/** errno of a call as SpiError. */
import { constants } from 'node:os';
import { getSystemErrorName } from 'node:util';
import { SpiError, type SpiErrorCode } from '../../core/spi/index.js';

const KNOWN: ReadonlySet<string> = new Set<SpiErrorCode>([
  'EINVAL',
  'ENOMEM',
  'EBUSY',
  'EPERM',
  'EACCES',
  'ENODEV',
  'EADDRINUSE',
  'EADDRNOTAVAIL',
  'ENETUNREACH',
  'EHOSTUNREACH',
  'ECONNREFUSED',
  'ETIMEDOUT',
  'EOVERFLOW',
  'EALREADY',
  'EAGAIN',
  'EINTR',
  'EAFNOSUPPORT',
  'EISCONN',
  'ENOTCONN',
  'EOPNOTSUPP',
  'EIO',
]);

/** What means the same to us; anything else is EIO. */
const SAME: Readonly<Record<string, SpiErrorCode>> = {
  ENOTSUP: 'EOPNOTSUPP',
  ENOSYS: 'EOPNOTSUPP',
  EPROTONOSUPPORT: 'EOPNOTSUPP',
  ENOSPC: 'ENOMEM',
  ENOBUFS: 'ENOMEM',
  EMFILE: 'ENOMEM',
  ENFILE: 'ENOMEM',
  EFAULT: 'EINVAL',
  ENXIO: 'ENODEV',
};

/** @param detail what was asked for, or what it means */
export function errnoError(call: string, errno: number, detail?: string): SpiError {
  const name = getSystemErrorName(-errno);
  const code = KNOWN.has(name) ? (name as SpiErrorCode) : (SAME[name] ?? 'EIO');
  return new SpiError(code, `${call}: ${name}${detail === undefined ? '' : ` (${detail})`}`);
}

/** @throws SpiError unless `errno` is 0 */
export function check(call: string, errno: number, detail?: string): void {
  if (errno !== 0) throw errnoError(call, errno, detail);
}

/** @throws SpiError when `made` is not the number of an object */
export function made(call: string, number: number, detail?: string): number {
  if (number > 0) return number;
  throw errnoError(call, number === 0 ? constants.errno.EIO : -number, detail);
}
