/** Errors of a port, with remedies: of binding a socket, and of multicast groups. */
import { networkInterfaces } from 'node:os';
import { SpiError, type Gid, ipFromGid, isIpv4Gid } from '../../../core/spi/index.js';

/** Ports below it are privileged, on Linux by default. */
const FIRST_FREE_PORT = 1024;

/** @returns SpiError with the code of the system, where it is one of ours */
export function bindError(cause: unknown, address: string, udpPort: number): SpiError {
  const { code, message } = cause as { code?: string; message?: string };
  const where = `${address}, UDP port ${udpPort}`;
  switch (code) {
    case 'EADDRINUSE': {
      const hint = `take ${otherAddresses(address)}, or another udpPort at both ends`;
      return new SpiError(code, `${where} is in use by another program`, { cause, hint });
    }
    case 'EADDRNOTAVAIL': {
      const hint = `it has ${ownAddresses().join(', ')}`;
      return new SpiError(code, `${address} is not an address of this machine`, { cause, hint });
    }
    case 'EACCES':
    case 'EPERM': {
      const isPrivileged = udpPort < FIRST_FREE_PORT;
      const hint = `take a udpPort from ${FIRST_FREE_PORT} on, or run with CAP_NET_BIND_SERVICE`;
      return new SpiError(code, `not permitted to use ${where}`, {
        cause,
        ...(isPrivileged && { hint }),
      });
    }
    case 'EMFILE':
    case 'ENFILE': {
      const hint = 'raise the limit of open files: ulimit -n';
      const isOfProcess = code === 'EMFILE';
      const message = `too many open files for ${where}`;
      return new SpiError('ENOMEM', message, { cause, ...(isOfProcess && { hint }) });
    }
    default:
      return new SpiError('EIO', `cannot open ${where}: ${message ?? ''}`, { cause });
  }
}

/**
 * Suggests other addresses for a second program on this machine: only one program can have an
 * address.
 */
function otherAddresses(address: string): string {
  const next = nextLoopback(address);
  if (next !== undefined) return `${next} or another address of this machine`;
  const others = ownAddresses().filter((each) => each !== address);
  return `another address of this machine (${others.join(', ')})`;
}

/** Every address of 127.0.0.0/8 is there. */
function nextLoopback(address: string): string | undefined {
  const last = /^127\.\d+\.\d+\.(\d+)$/.exec(address)?.[1];
  if (last === undefined) return undefined;
  const next = (Number(last) % 254) + 1;
  return address.replace(/\d+$/, String(next));
}

/** Own addresses, without link-local ones: those need the name of the link. */
function ownAddresses(): string[] {
  const all = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  return all.map(({ address }) => address).filter((address) => !address.startsWith('fe80:'));
}

// Errors of joining or reaching a multicast group, with remedies.

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
