/**
 * rdma_cm's conventions: service ids by port, and a private header in the first 36 bytes of the
 * private data of REQ and SIDR_REQ (IBTA annex A11). The rest belongs to the consumer.
 */
import { type Gid, isIpv4Gid } from '../../../core/spi/wire/address.js';
import { bytes, type MessageOf, uint, wireCodec } from './field-table.js';
import { isPortServiceId } from '../../../core/spi/modules/cm.js';

export const CMA_HEADER_LENGTH = 36;

export const cmaHeaderCodec = wireCodec('CMA header', CMA_HEADER_LENGTH, {
  /** 0; a request with another one is rejected (28). */
  version: uint(0, 0, 8),
  /** 4 or 6. */
  ipVersion: uint(1, 0, 4),
  sourcePort: uint(2, 0, 16),
  /** 16 bytes, see `gidOfCmaAddress`. */
  sourceAddress: bytes(4, 16),
  destinationAddress: bytes(20, 16),
});
export type CmaHeader = MessageOf<typeof cmaHeaderCodec>;

/** A GID in the form of this header: an IPv4 address follows twelve zeros. */
export function cmaAddressOfGid(gid: Gid): Uint8Array {
  const address = gid.slice();
  if (isIpv4Gid(gid)) address.fill(0, 10, 12);
  return address;
}

/** The GID of an address in a header with this IP version; undefined unless that is 4 or 6. */
export function gidOfCmaAddress(address: Uint8Array, ipVersion: number): Gid | undefined {
  if (ipVersion !== 4 && ipVersion !== 6) return undefined;
  const gid = address.slice();
  if (ipVersion === 4) gid.fill(0, 0, 10).fill(0xff, 10, 12);
  return gid;
}

/**
 * Joins header and consumer data to the private data of a REQ or SIDR_REQ.
 * @param limitBytes for the consumer: `CmPrivateData.REQ` or `.SIDR_REQ` of the SPI
 * @throws RangeError naming length and limit
 */
export function joinCmaPrivateData(
  header: CmaHeader,
  consumerData: Uint8Array,
  limitBytes: number,
): Uint8Array {
  if (consumerData.length > limitBytes) {
    throw new RangeError(
      `private data has ${consumerData.length} bytes, must have at most ${limitBytes}`,
    );
  }
  const joined = new Uint8Array(CMA_HEADER_LENGTH + consumerData.length);
  cmaHeaderCodec.emit(header, joined.subarray(0, CMA_HEADER_LENGTH));
  joined.set(consumerData, CMA_HEADER_LENGTH);
  return joined;
}

/** Undefined if the private data is too short for the header. */
export function splitCmaPrivateData(
  privateData: Uint8Array,
): { readonly header: CmaHeader; readonly consumerData: Uint8Array } | undefined {
  const header = cmaHeaderCodec.parse(privateData.subarray(0, CMA_HEADER_LENGTH));
  return header && { header, consumerData: privateData.slice(CMA_HEADER_LENGTH) };
}

/** A readable name: `port 7000 (service id 0x1061b58)`. */
export function serviceName(serviceId: bigint): string {
  const name = `service id 0x${serviceId.toString(16)}`;
  return isPortServiceId(serviceId) ? `port ${serviceId & 0xffffn} (${name})` : name;
}
