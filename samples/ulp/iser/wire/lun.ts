/** Logical unit numbers: 8 bytes on the wire (SAM-5 4.7). */

/** Numbers of the flat space addressing method: 14 bits. */
export const MAX_LUN = 0x3fff;

/**
 * A single-level LUN: peripheral device addressing below 256, else flat space addressing.
 * @param lun 0 to 16,383
 * @throws RangeError for another number
 */
export function emitLun(lun: number): Uint8Array {
  if (!Number.isInteger(lun) || lun < 0 || lun > MAX_LUN) {
    throw new RangeError(`LUN is ${lun}, must be 0 to ${MAX_LUN}`);
  }
  const bytes = new Uint8Array(8);
  bytes[0] = (lun < 256 ? 0 : 0x40) | (lun >>> 8);
  bytes[1] = lun;
  return bytes;
}

/** The number, or undefined for a LUN of several levels or of another addressing method. */
export function readLun(bytes: Uint8Array): number | undefined {
  for (let place = 2; place < 8; place++) if (bytes[place] !== 0) return undefined;
  const method = bytes[0]! >>> 6;
  if (method === 0) return bytes[0] === 0 ? bytes[1] : undefined;
  return method === 1 ? ((bytes[0]! & 0x3f) << 8) | bytes[1]! : undefined;
}
