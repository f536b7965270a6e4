/** errno of a call as SpiError. */
import { constants } from 'node:os';
import { getSystemErrorName } from 'node:util';
import { SpiError, type SpiErrorCode } from '../../../core/spi/index.js';

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

/** Codes with the same meaning in the SPI; any other one is EIO. */
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

/** Name of an errno, such as ETIMEDOUT; of either sign. */
export function errnoName(errno: number): string {
  return getSystemErrorName(-Math.abs(errno));
}

/** @param detail what was asked for, or what it means */
export function errnoError(call: string, errno: number, detail?: string): SpiError {
  const name = errnoName(errno);
  const code = KNOWN.has(name) ? (name as SpiErrorCode) : (SAME[name] ?? 'EIO');
  return new SpiError(code, `${call}: ${name}${detail === undefined ? '' : ` (${detail})`}`);
}

/** Names of calls that the addon makes in one of its own: it numbers the one that has failed. */
export const CALLS = {
  open: [
    'ibv_open_device',
    'ibv_get_device_list',
    'ibv_create_comp_channel',
    'watching the events of ibv_open_device',
  ],
  close: ['ibv_close_device', 'ibv_destroy_comp_channel'],
  xrcSrq: ['ibv_create_srq_ex', 'ibv_get_srq_num'],
  events: ['ibv_get_async_event', 'ibv_get_cq_event'],
} as const;

const CALL_SHIFT = 16;
const ERRNO_MASK = (1 << CALL_SHIFT) - 1;

/** @param failure what `failureOf` of the addon has put together */
export function failureError(
  call: string | readonly string[],
  failure: number,
  detail?: string,
): SpiError {
  const name = typeof call === 'string' ? call : call[failure >> CALL_SHIFT];
  return errnoError(name ?? 'libibverbs', failure & ERRNO_MASK, detail);
}

/** Returns the result of a query. @throws SpiError when it is an errno */
export function answered<T>(call: string, answer: T | number, detail?: string): T {
  if (typeof answer === 'number') throw errnoError(call, answer, detail);
  return answer;
}

/** @throws SpiError unless `errno` is 0 */
export function check(call: string | readonly string[], errno: number, detail?: string): void {
  if (errno !== 0) throw failureError(call, errno, detail);
}

/** @throws SpiError when `made` is not the number of an object */
export function made(call: string | readonly string[], number: number, detail?: string): number {
  if (number > 0) return number;
  throw failureError(call, number === 0 ? constants.errno.EIO : -number, detail);
}
