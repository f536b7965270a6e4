/** Checks and builds rdma_cm's header in the private data of REQ and SIDR_REQ (IBTA annex A11). */
import { type Gid, gidEquals, isIpv4Gid, isPortServiceId } from '../../../core/spi/index.js';
import {
  cmaAddressOfGid,
  type CmaHeader,
  gidOfCmaAddress,
  splitCmaPrivateData,
} from '../wire/cma-header.js';

export interface CmaContents {
  /** The port in rdma_cm's header; 0 without one. */
  readonly remotePort: number;
  /** The consumer's part of the private data. */
  readonly privateData: Uint8Array;
}

/**
 * The contents for the consumer; undefined if the header is not for this address.
 * @param destination our address that the request names, or came to
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

/** True for version 0, addresses of one family, and that destination. */
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
