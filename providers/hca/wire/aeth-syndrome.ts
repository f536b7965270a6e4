/**
 * The AETH syndrome byte: bits 6-5 say what it is, bits 4-0 carry the value (IBTA 9.7.5.1.1).
 *
 *     000ccccc ACK, encoded credits    001ttttt RNR NAK, timer code    011nnnnn NAK, code
 */

export const AETH_TYPE = { ack: 0, rnrNak: 1, reserved: 2, nak: 3 } as const;

/** NAK codes, the low 5 bits of a NAK syndrome. 5 to 31 are reserved. */
export const NAK_CODE = {
  psnSequenceError: 0,
  invalidRequest: 1,
  remoteAccessError: 2,
  remoteOperationalError: 3,
  invalidRdRequest: 4,
} as const;

/** The syndromes a responder sends, ready made; an RNR NAK is `rnrNakSyndrome(code)`. */
export const SYNDROME = {
  /** ACK without end-to-end credits: what rdma_rxe always sends, and the safest thing to send. */
  ack: 0x1f,
  nakPsnSequence: 0x60,
  nakInvalidRequest: 0x61,
  nakRemoteAccess: 0x62,
  nakRemoteOperational: 0x63,
} as const;

/** Credits by their code, of which 31 is none (rdmavt rc.c, credit_table). */
const CREDITS_OF_CODE = [0, 1, 2, 3];
for (let code = 4; code < 31; code++)
  CREDITS_OF_CODE.push((code % 2 === 0 ? 2 : 3) << (code / 2 - 1));

/** Code of an ACK from a responder whose receives others may take, or that counts none. */
export const NO_CREDITS = 31;

/** The code of the most credits that are at most `count`. */
export function creditCode(count: number): number {
  if (count < 4) return count;
  const bits = 31 - Math.clz32(count);
  return Math.min(2 * bits + ((count >>> (bits - 1)) & 1), NO_CREDITS - 1);
}

/** @param code 0 to 30 */
export function creditsOf(code: number): number {
  return CREDITS_OF_CODE[code]!;
}

/** One of `AETH_TYPE`. The reserved top bit is ignored. */
export function syndromeType(syndrome: number): number {
  return (syndrome >>> 5) & 3;
}

/** Credit code, RNR timer code or NAK code, depending on the type. */
export function syndromeValue(syndrome: number): number {
  return syndrome & 0x1f;
}

export function rnrNakSyndrome(timerCode: number): number {
  return 0x20 | (timerCode & 0x1f);
}

/** The 5-bit RNR NAK timer codes in microseconds (IBTA 9.7.5.2.8). Code 0 is the longest. */
export const RNR_TIMER_US: readonly number[] = [
  655_360, 10, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640, 960, 1_280, 1_920, 2_560, 3_840,
  5_120, 7_680, 10_240, 15_360, 20_480, 30_720, 40_960, 61_440, 81_920, 122_880, 163_840, 245_760,
  327_680, 491_520,
];

/** Waiting time in microseconds; only the low 5 bits of the code count. */
export function rnrTimerUs(timerCode: number): number {
  return RNR_TIMER_US[timerCode & 0x1f] ?? 0;
}
