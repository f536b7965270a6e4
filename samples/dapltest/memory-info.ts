/** The encoding of memory locations that the sides exchange: {context u32, address u64}. */
import type { RemoteAddress } from 'dapl';

export const MEMORY_INFO_BYTES = 12;

/** Writes one entry. @param littleEndian the byte order that the reader asked for */
export function writeMemoryInfo(
  bytes: Buffer,
  { rmrContext, address }: RemoteAddress,
  littleEndian: boolean,
): void {
  if (littleEndian) {
    bytes.writeUInt32LE(rmrContext, 0);
    bytes.writeBigUInt64LE(address, 4);
  } else {
    bytes.writeUInt32BE(rmrContext, 0);
    bytes.writeBigUInt64BE(address, 4);
  }
}

export function readMemoryInfo(bytes: Buffer, littleEndian: boolean): RemoteAddress {
  return littleEndian
    ? { rmrContext: bytes.readUInt32LE(0), address: bytes.readBigUInt64LE(4) }
    : { rmrContext: bytes.readUInt32BE(0), address: bytes.readBigUInt64BE(4) };
}
