/**
 * The protocol of uDAPL's dtest: numbers are big-endian, data is not converted.
 *
 * Both sides connect (private data: 1, 2, 3 …, answered by 2, 3, 4 …), exchange the location of
 * their memory, and run the same steps: RDMA writes, RDMA reads and messages, or, as options say,
 * writes with an immediate at the end, or a ping-pong of writes. Both sides must use the same
 * options.
 */
import type { RemoteAddress } from 'dapl';

export const CONN_QUAL = 45_248;
export const PLACE_BYTES = 16;
/** Receives for memory locations, and RDMA reads in flight. */
export const PLACE_RECEIVES = 3;
export const READS = 4;
/** Rounds of the ping-pong of messages. */
export const MESSAGE_ROUNDS = 100;
/** The first byte of a side's messages. */
export const MESSAGE_MARK = { client: 0x55, server: 0xaa } as const;
/** dtest's 0x7777 as a little-endian machine sends it; our wire format is big-endian. */
export const LAST_WRITE_IMMEDIATE = 0x77770000;

const PRIVATE_BYTES = 48;

/** Private data of the request; in the answer `first` is 2. */
export function greeting(first: 1 | 2): Uint8Array {
  return Uint8Array.from({ length: PRIVATE_BYTES }, (_, index) => first + index);
}

export function isGreeting(privateData: Uint8Array, first: 1 | 2): boolean {
  return Buffer.from(privateData.subarray(0, PRIVATE_BYTES)).equals(greeting(first));
}

/** A side's memory, which the peer writes and reads. */
export interface Place extends RemoteAddress {
  readonly lengthBytes: number;
}

export function writePlace(message: Buffer, { address, lengthBytes, rmrContext }: Place): void {
  message.writeBigUInt64BE(address, 0);
  message.writeUInt32BE(lengthBytes, 8);
  message.writeUInt32BE(rmrContext, 12);
}

export function readPlace(message: Buffer): Place {
  return {
    address: message.readBigUInt64BE(0),
    lengthBytes: message.readUInt32BE(8),
    rmrContext: message.readUInt32BE(12),
  };
}

/** Expected first bytes of a ping-pong, by round; the fifth round is not checked. */
export const PATTERNS: readonly (number | undefined)[] = [0x00, 0xff, 0x55, 0xaa, undefined];

/**
 * Lengths of the ping-pong of writes for `-a`: powers of two, or multiples of `increment`, each
 * with its neighbours.
 */
export function allLengths(maxBytes: number, increment: number): number[] {
  const lengths: number[] = [];
  const top = increment > 0 ? Math.floor(maxBytes / increment) : Math.ceil(Math.log2(maxBytes));
  for (let step = increment > 0 ? 1 : 0; step <= top; step++) {
    const length = increment > 0 ? step * increment : 2 ** step;
    if (length > 4) lengths.push(length - 1);
    lengths.push(length);
    if (length > 1 && length < maxBytes) lengths.push(length + 1);
  }
  return lengths;
}
