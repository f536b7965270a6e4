/** Errors of joining or reaching a multicast group, with remedies. */
import { type Gid, ipFromGid, isIpv4Gid, SpiError } from '../../../core/spi/index.js';

/** Address of a membership, or of a path to a group. */
export interface GroupAddress {
  readonly group: Gid;
  /** The address of the interface where the group is joined, or sent to. */
  readonly local: Gid;
  readonly udpPort: number;
}

/**
 * @returns SpiError that names the group: EADDRINUSE, EADDRNOTAVAIL, ENETUNREACH, ENOMEM, EPERM,
 * EIO
 */
export function groupError(cause: unknown, { group, local, udpPort }: GroupAddress): SpiError {
  const { code = '', message = String(cause) } = cause as { code?: string; message?: string };
  const what = `the group ${ipFromGid(group)}`;
  const where = `the interface of ${ipFromGid(local)}`;
  switch (code) {
    case 'EADDRINUSE': {
      const hint = 'rdma_rxe of this machine’s kernel is one: unload it, or take another udpPort';
      const text = `${what}: a program has UDP port ${udpPort} and shares it with none`;
      return new SpiError(code, text, { cause, hint });
    }
    case 'EADDRNOTAVAIL':
    case 'ENODEV':
      return new SpiError('EADDRNOTAVAIL', `${what}: ${where} is gone`, { cause });
    case 'ENETUNREACH':
    case 'EHOSTUNREACH':
    case 'ERR_SOCKET_DGRAM_NOT_CONNECTED': {
      const hint = `give it one, such as: ${routeCommand(group, local)}`;
      const text = `${what}: ${where} has no route for multicast`;
      return new SpiError('ENETUNREACH', text, { cause, hint });
    }
    case 'EMFILE':
    case 'ENFILE':
    case 'ENOMEM':
    case 'ENOBUFS': {
      const hint = 'a group takes a socket: raise the limit of open files (ulimit -n)';
      return new SpiError('ENOMEM', `${what}: the system has no socket for it (${code})`, {
        cause,
        hint,
      });
    }
    case 'EACCES':
    case 'EPERM':
      return new SpiError('EPERM', `${what}: not permitted at ${where}`, { cause });
    default:
      return new SpiError('EIO', `${what} at ${where}: ${message}`, { cause });
  }
}

/**
 * Loopback has none of IPv6 by default, and Linux takes what is routed there for lost unless the
 * route is a local one.
 */
function routeCommand(group: Gid, local: Gid): string {
  if (isIpv4Gid(group)) return 'ip route add multicast 224.0.0.0/4 dev NAME';
  if (ipFromGid(local) === '::1') return 'ip -6 route add local ff00::/8 dev lo table local';
  return 'ip -6 route add multicast ff00::/8 dev NAME table local';
}
