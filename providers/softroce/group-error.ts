/** Why a multicast group could not be joined, or is not reached, and what to do about it. */
import { type Gid, ipFromGid, SpiError } from '../../core/spi/index.js';

/** What a membership is of. */
export interface Membership {
  readonly group: Gid;
  /** Of the interface where the group is joined. */
  readonly local: Gid;
  readonly udpPort: number;
}

/** @returns SpiError that names the group: EADDRINUSE, EADDRNOTAVAIL, ENOMEM, EPERM, EIO */
export function joinError(cause: unknown, { group, local, udpPort }: Membership): SpiError {
  const { code, message } = cause as { code?: string; message?: string };
  const what = `the group ${ipFromGid(group)}`;
  const where = `the interface of ${ipFromGid(local)}`;
  switch (code) {
    case 'EADDRINUSE': {
      const hint = 'the kernel’s own RoCE driver (rdma_rxe) does not, nor do other RoCE programs';
      const text = `${what}, UDP port ${udpPort}: a program has that port and shares it with none`;
      return new SpiError(code, text, { cause, hint });
    }
    case 'EADDRNOTAVAIL':
    case 'ENODEV':
      return new SpiError('EADDRNOTAVAIL', `${what}: ${where} is gone`, { cause });
    case 'EMFILE':
    case 'ENFILE':
    case 'ENOMEM':
    case 'ENOBUFS': {
      const hint = 'a group takes a socket: raise the limit of open files (ulimit -n)';
      return new SpiError('ENOMEM', `${what}: no socket for it (${code})`, { cause, hint });
    }
    case 'EACCES':
    case 'EPERM':
      return new SpiError('EPERM', `${what}: not permitted to hear it at ${where}`, { cause });
    default:
      return new SpiError('EIO', `${what} cannot be joined at ${where}: ${message ?? ''}`, {
        cause,
      });
  }
}

/** The system has no route to the group: @returns SpiError('ENETUNREACH') */
export function noRouteToGroup(cause: unknown, group: Gid, local: Gid): SpiError {
  const { code = '' } = cause as { code?: string };
  const family = ipFromGid(group).includes(':') ? 'ip -6 route' : 'ip route';
  const range = family === 'ip route' ? '224.0.0.0/4' : 'ff00::/8';
  const where = `the interface of ${ipFromGid(local)}`;
  return new SpiError('ENETUNREACH', `no route to the group ${ipFromGid(group)} (${code})`, {
    cause,
    hint: `${where} has no multicast route, as lo has none of IPv6: ${family} add multicast ${range} dev NAME table local`,
  });
}
