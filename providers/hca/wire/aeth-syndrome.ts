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
