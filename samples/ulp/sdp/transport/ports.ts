/** Ports of SDP: the numbers of TCP, in a space of service ids of its own. */
import { DatError, type Ia, type Psp } from 'dapl';
import { StreamError } from '../../socket/index.js';

/** Service ids of SDP, before the port (IBTA annex A4). */
const SERVICE_SPACE = 0x0000_0000_0001_0000n;
/** The first dynamic port (RFC 6335). */
const FIRST_DYNAMIC = 49_152;
const LAST_PORT = 65_535;
const DYNAMIC = LAST_PORT - FIRST_DYNAMIC + 1;

export function serviceIdOf(port: number): bigint {
  return SERVICE_SPACE | BigInt(port);
}

let next = 0;

function dynamicPort(): number {
  const port = FIRST_DYNAMIC + next;
  next = (next + 1) % DYNAMIC;
  return port;
}

/**
 * @param port 0 for any free port
 * @throws DatError as `ia.createPsp`
 */
export function listenOn(ia: Ia, port: number): [Psp, number] {
  if (port !== 0) return [ia.createPsp({ serviceId: serviceIdOf(port) }), port];
  for (let left = DYNAMIC; ; left--) {
    const tried = dynamicPort();
    try {
      return [ia.createPsp({ serviceId: serviceIdOf(tried) }), tried];
    } catch (error) {
      const isTaken = DatError.isDatError(error) && error.code === 'DAT_CONN_QUAL_IN_USE';
      if (!isTaken || left === 1) throw error;
    }
  }
}

/** Local ports of connections, by address: a peer identifies a connection by them. */
export class LocalPorts {
  private readonly taken = new Set<string>();

  /**
   * @param port undefined for any free port
   * @throws StreamError EADDRINUSE
   */
  take(address: string, port: number | undefined): number {
    if (port !== undefined) {
      if (!this.reserve(address, port)) {
        throw new StreamError('EADDRINUSE', { syscall: 'bind', address, port });
      }
      return port;
    }
    for (let left = DYNAMIC; left > 0; left--) {
      const tried = dynamicPort();
      if (this.reserve(address, tried)) return tried;
    }
    throw new StreamError('EADDRINUSE', { syscall: 'bind', address, detail: 'no port is free' });
  }

  give(address: string, port: number): void {
    this.taken.delete(`${address} ${port}`);
  }

  private reserve(address: string, port: number): boolean {
    const key = `${address} ${port}`;
    if (this.taken.has(key)) return false;
    this.taken.add(key);
    return true;
  }
}
