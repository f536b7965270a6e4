/** UDP sockets of node:dgram as the dgram port needs them. */
import { createSocket, type Socket, type SocketOptions } from 'node:dgram';
import { networkInterfaces } from 'node:os';
import { type Gid, ipFromGid, isIpv4Gid } from '../../../core/spi/index.js';
import { bindError } from '../port/port-errors.js';

const BUFFER_BYTES = 4 << 20;

/** Options of sockets for the family of an address. */
export function socketOptions(gid: Gid): SocketOptions {
  const ipv6 = !isIpv4Gid(gid);
  return {
    type: ipv6 ? 'udp6' : 'udp4',
    ipv6Only: ipv6,
    recvBufferSize: BUFFER_BYTES,
    sendBufferSize: BUFFER_BYTES,
    // Addresses need no look-up, which would put each datagram off to a later tick.
    lookup: (host, _options, done) => done(null, host, ipv6 ? 6 : 4),
  };
}

/** @throws SpiError EADDRINUSE, EADDRNOTAVAIL, EACCES */
export function bindSocket(gid: Gid, udpPort: number): Promise<Socket> {
  const address = scopedAddress(gid, gid);
  const socket = createSocket(socketOptions(gid));
  return new Promise((resolve, reject) => {
    socket.once('error', (error) => {
      socket.close();
      reject(bindError(error, ipFromGid(gid), udpPort));
    });
    socket.bind({ address, port: udpPort, exclusive: true }, () => {
      socket.removeAllListeners('error');
      resolve(socket);
    });
  });
}

/** An address in text; a link-local one with the interface of the local address. */
export function scopedAddress(gid: Gid, local: Gid): string {
  const text = ipFromGid(gid);
  if (gid[0] !== 0xfe || ((gid[1] ?? 0) & 0xc0) !== 0x80) return text;
  return `${text}%${interfaceOf(local)?.name ?? ''}`;
}

/** Node does not tell an interface's MTU: loopback has room for all, Ethernet at least 1500. */
export function linkMtu(gid: Gid): number {
  return interfaceOf(gid)?.internal ? 65536 : 1500;
}

/** The interface that has an address. */
export function interfaceOf(gid: Gid): { name: string; internal: boolean } | undefined {
  const address = ipFromGid(gid);
  if (address.startsWith('127.')) return { name: 'lo', internal: true };
  for (const [name, entries] of Object.entries(networkInterfaces())) {
    const entry = entries?.find((candidate) => candidate.address === address);
    if (entry) return { name, internal: entry.internal };
  }
  return undefined;
}
