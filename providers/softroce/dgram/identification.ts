/**
 * Recovers the IPv4 identification, which a socket does not show, from the ICRC. A CRC is linear:
 * the ICRC received and one computed with identification 0 differ by the bits of the true one,
 * clocked through all bytes that follow.
 */
import { CRC32_POLYNOMIAL } from '../../hca/wire/crc32.js';

/**
 * IPv4 identifications that a peer may plausibly have used: the native port's peer_table.cc in
 * TypeScript. Solving alone leaves 2^16 acceptable ICRCs of 2^32. A peer that has proved to number
 * in a known way is held to it.
 */
const PROVEN = 16;
/** The most segments that a datagram can have: ours are numbered from 0. */
const MAX_SEGMENTS = 128;
/** Packets of one host overtake each other by less. */
const SLACK = 256;
/**
 * Identifications that a host may use up unseen by us, per millisecond: after a second all are
 * possible.
 */
const IDS_PER_MS = 64;
const CANDIDATE_WINDOW = 64;

/** The counter of a host, from which its kernel numbers all that goes to one address. */
export class HostNumbers {
  private last = -1;
  private lastMs = 0;

  expects(id: number, nowMs: number): boolean {
    if (this.last < 0) return false;
    const forward = SLACK + Math.ceil(nowMs - this.lastMs) * IDS_PER_MS;
    return ((id - this.last + SLACK) & 0xffff) <= SLACK + forward;
  }

  note(id: number, nowMs: number): void {
    this.last = id;
    this.lastMs = nowMs;
  }
}

export class PeerNumbers {
  private zeroProof = 0;
  private hostProof = 0;
  /** An identification that a proven peer should not have used; two in a row change our mind. */
  private candidate = -1;

  constructor(private readonly host: HostNumbers) {}

  /** @returns true if a packet is accepted with this identification, which explains its ICRC */
  admit(id: number, nowMs: number): boolean {
    const followsHost = this.host.expects(id, nowMs);
    if (!this.fits(id, followsHost)) {
      const step = (id - this.candidate) & 0xffff;
      const follows = this.candidate >= 0 && step >= 1 && step <= CANDIDATE_WINDOW;
      this.candidate = id;
      if (!follows) return false;
    }
    this.zeroProof = id < MAX_SEGMENTS ? Math.min(this.zeroProof + 1, PROVEN) : 0;
    this.hostProof = followsHost ? Math.min(this.hostProof + 1, PROVEN) : 0;
    this.candidate = -1;
    this.host.note(id, nowMs);
    return true;
  }

  private fits(id: number, followsHost: boolean): boolean {
    const fromZero = this.zeroProof === PROVEN;
    const fromHost = this.hostProof === PROVEN;
    if (!fromZero && !fromHost) return true;
    return (fromZero && id < MAX_SEGMENTS) || (fromHost && followsHost);
  }
}

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
