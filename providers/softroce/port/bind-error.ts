/** Errors of binding a socket to an address, with alternatives. */
import { networkInterfaces } from 'node:os';
import { SpiError } from '../../../core/spi/index.js';

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
