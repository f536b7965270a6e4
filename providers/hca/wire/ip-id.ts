/**
 * Recovers the IPv4 identification of a packet from its ICRC, for receivers that see only the UDP
 * payload.
 *
 * The ICRC covers the identification, and a CRC is linear: the ICRC received and the one computed
 * with identification 0 differ by the 16 bits of the true one, clocked through all bytes that
 * follow. Clocking a byte multiplies by x^8 modulo the generator, so multiplying the difference
 * by x^-8 for every byte clocked undoes it. What comes out is the identification, and if it does
 * not fit in 16 bits the packet is corrupt. One damaged packet in 2^16 passes: the price of not
 * seeing the IP header. Prefer an identification that the peer was expected to use.
 */
import { CRC32_POLYNOMIAL } from './crc32.js';

/** Bytes covered by the ICRC that follow the identification, apart from the UDP payload. */
const IP_AND_UDP_BYTES_AFTER_ID = 14 + 8;
const ICRC_BYTES = 4;

/** x^0 in the reflected form. */
const ONE = 0x80000000 | 0;

/** No UDP payload in IPv4 is longer. */
const MAX_BYTES_CLOCKED = 65536;

/** `x^-8n` for every n asked for so far; 0 is no power of x and means "not yet". */
const inversePowers = new Int32Array(MAX_BYTES_CLOCKED);

/** `value * x^-8`: one byte clocked backwards. */
function unclockByte(value: number): number {
  let register = value;
  for (let bit = 0; bit < 8; bit += 1) {
    register = register < 0 ? ((register ^ CRC32_POLYNOMIAL) << 1) | 1 : register << 1;
  }
  return register;
}

/** `a * b` modulo the generator, both in the reflected form. */
function multiply(a: number, b: number): number {
  let product = 0;
  let multiple = b;
  for (let bits = a; bits !== 0; bits <<= 1) {
    product ^= multiple & (bits >> 31);
    multiple = (multiple >>> 1) ^ (CRC32_POLYNOMIAL & -(multiple & 1));
  }
  return product;
}

/** `x^-8n` by squaring, from the least significant bit of `n` up. */
function inversePower(byteCount: number): number {
  let power = ONE;
  let square = unclockByte(ONE);
  for (let count = byteCount; count > 0; count >>>= 1) {
    if (count & 1) power = multiply(power, square);
    square = multiply(square, square);
  }
  return power;
}

/**
 * @param receivedIcrc as read by `readIcrc`
 * @param icrcWithIdZero computed over the same packet with identification 0 and the DF flag set
 * @param udpPayloadBytes BTH to ICRC inclusive
 * @returns the identification, 0 to 65535, or -1 if there is none: the packet is corrupt
 */
export function recoverIpId(
  receivedIcrc: number,
  icrcWithIdZero: number,
  udpPayloadBytes: number,
): number {
  const difference = (receivedIcrc ^ icrcWithIdZero) | 0;
  if (difference === 0) return 0;
  // The two bytes of the identification itself are clocked as well, hence the 2.
  const clocked = IP_AND_UDP_BYTES_AFTER_ID + udpPayloadBytes - ICRC_BYTES + 2;
  if (clocked >= MAX_BYTES_CLOCKED) return -1;
  let inverse = inversePowers[clocked] as number;
  if (inverse === 0) {
    inverse = inversePower(clocked);
    inversePowers[clocked] = inverse;
  }
  const id = multiply(difference, inverse);
  // The first byte on the wire, the high one, is the low byte of the register.
  return id >>> 16 === 0 ? ((id & 0xff) << 8) | (id >>> 8) : -1;
}
