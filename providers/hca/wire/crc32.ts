/**
 * CRC-32 (polynomial 0x04C11DB7, reflected), eight bytes a step ("slicing by 8"). The functions
 * work on the raw register: the caller starts with all ones and complements at the end.
 */

/** x^0 + ... of the generator, bit-reversed: the least significant bit is the highest power. */
export const CRC32_POLYNOMIAL = 0xedb88320;

const SLICES = 8;

/** `TABLE[k * 256 + b]` is byte `b` clocked through `k + 1` byte steps. */
const TABLE = makeTable();

function makeTable(): Int32Array {
  const table = new Int32Array(SLICES * 256);
  for (let byte = 0; byte < 256; byte += 1) {
    let register = byte;
    for (let bit = 0; bit < 8; bit += 1) {
      register = (register >>> 1) ^ (register & 1 ? CRC32_POLYNOMIAL : 0);
    }
    table[byte] = register;
  }
  for (let index = 256; index < table.length; index += 1) {
    const before = table[index - 256] as number;
    table[index] = (before >>> 8) ^ (table[before & 0xff] as number);
  }
  return table;
}

/** The register after one byte. */
export function crc32Byte(register: number, byte: number): number {
  return (register >>> 8) ^ (TABLE[(register ^ byte) & 0xff] as number);
}

/**
 * The register after `bytes[start]` to `bytes[end - 1]`.
 * @param end at most `bytes.length`
 */
export function crc32Update(
  register: number,
  bytes: Uint8Array,
  start: number,
  end: number,
): number {
  let crc = register | 0;
  let at = start;
  for (const last = end - SLICES; at <= last; at += SLICES) {
    crc =
      (TABLE[0x700 + ((crc ^ (bytes[at] as number)) & 0xff)] as number) ^
      (TABLE[0x600 + (((crc >>> 8) ^ (bytes[at + 1] as number)) & 0xff)] as number) ^
      (TABLE[0x500 + (((crc >>> 16) ^ (bytes[at + 2] as number)) & 0xff)] as number) ^
      (TABLE[0x400 + ((crc >>> 24) ^ (bytes[at + 3] as number))] as number) ^
      (TABLE[0x300 + (bytes[at + 4] as number)] as number) ^
      (TABLE[0x200 + (bytes[at + 5] as number)] as number) ^
      (TABLE[0x100 + (bytes[at + 6] as number)] as number) ^
      (TABLE[bytes[at + 7] as number] as number);
  }
  for (; at < end; at += 1) crc = crc32Byte(crc, bytes[at] as number);
  return crc;
}
