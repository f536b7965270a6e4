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
  nakInvalidRdRequest: 0x64,
} as const;

/** The credit code that says "this ACK carries no end-to-end credits". */
export const CREDITS_NOT_USED = 31;

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

export function nakSyndrome(nakCode: number): number {
  return 0x60 | (nakCode & 0x1f);
}

export function ackSyndrome(creditCode: number): number {
  return creditCode & 0x1f;
}

// IBTA table 46: exact up to 4, then 2, 3, 4, 6, 8, ... growing by half an octave a step.
const CREDITS = [
  0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048,
  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768,
] as const;

/** Credits of a 5-bit code, or -1 for code 31: flow control not in use. */
export function creditsOfCode(creditCode: number): number {
  return CREDITS[creditCode & 0x1f] ?? -1;
}

/** The largest credit code that does not promise more than `credits`, 0 to 30. */
export function codeOfCredits(credits: number): number {
  let code = 0;
  while (code < 30 && (CREDITS[code + 1] ?? Infinity) <= credits) code += 1;
  return code;
}
