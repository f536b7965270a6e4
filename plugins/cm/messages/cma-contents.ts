/** rdma_cm's part of a request's private data, checked; REQ and SIDR_REQ alike (IBTA annex A11). */
import { type Gid, gidEquals, isIpv4Gid, isPortServiceId } from '../../../core/spi/index.js';
import {
  cmaAddressOfGid,
  type CmaHeader,
  gidOfCmaAddress,
  splitCmaPrivateData,
} from '../wire/cma-header.js';

export interface CmaContents {
  /** Of rdma_cm's header, 0 without one. */
  readonly remotePort: number;
  /** The consumer's. */
  readonly privateData: Uint8Array;
}

/**
 * What the consumer gets to see, or undefined for a header that is not for us.
 * @param destination the address of ours that the request names, or came to
 */
export function cmaContentsOf(
  serviceId: bigint,
  privateData: Uint8Array,
  destination: Gid,
): CmaContents | undefined {
  if (!isPortServiceId(serviceId)) return { remotePort: 0, privateData };
  const split = splitCmaPrivateData(privateData);
  if (!split || !isHeaderFor(split.header, destination)) return undefined;
  return { remotePort: split.header.sourcePort, privateData: split.consumerData };
}

/** Version 0, one family throughout, and addressed to that GID. */
function isHeaderFor(header: CmaHeader, destination: Gid): boolean {
  const named = gidOfCmaAddress(header.destinationAddress, header.ipVersion);
  if (header.version !== 0 || !named) return false;
  if ((header.ipVersion === 4) !== isIpv4Gid(destination)) return false;
  return gidEquals(named, destination);
}

/** The header of a request from one address to another. */
export function cmaHeaderOf(source: Gid, destination: Gid, sourcePort: number): CmaHeader {
  return {
    version: 0,
    ipVersion: isIpv4Gid(source) ? 4 : 6,
    sourcePort,
    sourceAddress: cmaAddressOfGid(source),
    destinationAddress: cmaAddressOfGid(destination),
  };
}
