/** GIDs as struct sockaddr_in and sockaddr_in6, and the service ids that rdma_cm knows. */
import {
  type Gid,
  gidFromWords,
  ipFromGid,
  isIpv4Gid,
  isPortServiceId,
  PortSpace,
  SpiError,
} from '../../../core/spi/index.js';

/** Room for either kind. */
export const ADDRESS_BYTES = 28;

const AF_INET = 2;
const AF_INET6 = 10;

export interface SocketAddress {
  readonly bytes: Uint8Array;
  /** For messages: address and port. */
  readonly text: string;
}

/** @param scopeId interface index, for link-local addresses */
export function socketAddressOf(gid: Gid, port: number, scopeId = 0): SocketAddress {
  const bytes = new Uint8Array(ADDRESS_BYTES);
  const view = new DataView(bytes.buffer);
  view.setUint16(2, port);
  if (isIpv4Gid(gid)) {
    view.setUint16(0, AF_INET, true);
    bytes.set(gid.subarray(12, 16), 4);
    return { bytes, text: `${ipFromGid(gid)}:${port}` };
  }
  view.setUint16(0, AF_INET6, true);
  bytes.set(gid, 8);
  view.setUint32(24, scopeId, true);
  return { bytes, text: `[${ipFromGid(gid)}]:${port}` };
}

/** The GID of a socket address; all zeros when it is of no family that we know. */
export function gidOfSocketAddress(bytes: Uint8Array): Gid {
  const view = new DataView(bytes.buffer, bytes.byteOffset, ADDRESS_BYTES);
  const family = view.getUint16(0, true);
  if (family === AF_INET6) return bytes.slice(8, 24);
  if (family === AF_INET) return gidFromWords([0, 0, 0xffff, view.getUint32(4)]);
  return new Uint8Array(16);
}

export function portOfSocketAddress(bytes: Uint8Array): number {
  return new DataView(bytes.buffer, bytes.byteOffset, ADDRESS_BYTES).getUint16(2);
}

/** A peer for messages: what a person typed, and what the device knows it by. */
export function peerText(gid: Gid): string {
  const groups: string[] = [];
  for (let i = 0; i < 16; i += 2) {
    groups.push((((gid[i] ?? 0) << 8) | (gid[i + 1] ?? 0)).toString(16).padStart(4, '0'));
  }
  return `${ipFromGid(gid)} (GID ${groups.join(':')})`;
}

export interface CmService {
  readonly portSpace: number;
  readonly port: number;
}

const SPACES: readonly bigint[] = Object.values(PortSpace);

/**
 * Port space and port of a service id; librdmacm knows those of rdma_cm only.
 * @throws SpiError('EOPNOTSUPP') for that of no port; ('EINVAL') for port 0
 */
export function serviceOf(serviceId: bigint): CmService {
  const space = serviceId >> 16n;
  const port = Number(serviceId & 0xffffn);
  if (SPACES.includes(space) && port > 0) return { portSpace: Number(space), port };
  throw new SpiError(
    isPortServiceId(serviceId) ? 'EINVAL' : 'EOPNOTSUPP',
    `service id 0x${serviceId.toString(16)}: librdmacm takes port 1 to 65535 of a port space ` +
      '(0x0106 TCP, 0x0111 UDP, 0x013f IB) only',
  );
}
