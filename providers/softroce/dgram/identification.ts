/**
 * Solving for the IPv4 identification, which a socket does not show, by the linearity of the CRC
 * (wire facts 1.7.4).
 */
import { CRC32_POLYNOMIAL } from '../../hca/wire/crc32.js';

// Registers in reflected order are polynomials: bit 31 is x^0. From the identification to the BTH
// there are 24 bytes, its own two included; each byte clocked in multiplies by x^8.
const ID_TO_BTH_BYTES = 24;

function multiply(a: number, b: number): number {
  let product = 0;
  for (let bit = 31; bit >= 0; bit--) {
    if ((a >>> bit) & 1) product ^= b;
    b = b & 1 ? (b >>> 1) ^ CRC32_POLYNOMIAL : b >>> 1;
  }
  return product >>> 0;
}

/** x^-(8 * 2^j) */
const inversePowers = ((): number[] => {
  let power = 0x80000000;
  for (let bit = 0; bit < 8; bit++) {
    power = power & 0x80000000 ? (((power ^ CRC32_POLYNOMIAL) << 1) | 1) >>> 0 : (power << 1) >>> 0;
  }
  const powers = [power];
  for (let j = 1; j < 17; j++) powers.push((power = multiply(power, power)));
  return powers;
})();

/**
 * The IPv4 identification that the sender's ICRC was made with.
 * @param difference received ICRC XOR the one made with identification 0
 * @param bytes from the BTH to the pad
 * @returns -1 when no identification explains the difference: the packet is corrupt
 */
export function solveIdentification(difference: number, bytes: number): number {
  let value = difference >>> 0;
  let clocked = ID_TO_BTH_BYTES + bytes;
  for (let j = 0; clocked !== 0; j++, clocked >>>= 1) {
    if (clocked & 1) value = multiply(value, inversePowers[j] ?? 0);
  }
  if (value >>> 16 !== 0) return -1;
  return ((value & 0xff) << 8) | (value >>> 8);
}
