/** CHAP (RFC 7143, 12.1.3; RFC 1994) without I/O: digest and random bytes are passed in. */
import { emitBinary, readBinary, readNumber } from './values.js';
import { WireError } from './wire-error.js';

/** MD5 of these bytes, 16 of them: `createHash('md5')` of node:crypto, as an example. */
export type Md5 = (bytes: Uint8Array) => Uint8Array;

/** `CHAP_A`: the one algorithm that every side has. */
export const CHAP_MD5 = 5;
export const CHAP_RESPONSE_BYTES = 16;
/** Bytes of the challenges that are made here. */
export const CHAP_CHALLENGE_BYTES = 16;
/** The longest challenge that is taken (RFC 7143, 12.1.3). */
const MAX_CHALLENGE_BYTES = 1024;
/** Below 96 bits a secret may be used only with IPsec (RFC 7143, 12.1.3). */
export const MIN_CHAP_SECRET_BYTES = 12;

/** A name and a secret, of a side that proves itself. */
export interface ChapCredentials {
  readonly name: string;
  /** At least 12 bytes; those of the two directions must differ. */
  readonly secret: Uint8Array;
}

/** The challenge: `CHAP_I` and `CHAP_C`. */
export interface ChapChallenge {
  readonly identifier: number;
  readonly challenge: Uint8Array;
}

/** The response that proves knowledge of the secret: `CHAP_R` (RFC 1994, 4.1). */
export function chapResponse(md5: Md5, asked: ChapChallenge, secret: Uint8Array): Uint8Array {
  const { identifier, challenge } = asked;
  const input = new Uint8Array(1 + secret.length + challenge.length);
  input[0] = identifier;
  input.set(secret, 1);
  input.set(challenge, 1 + secret.length);
  return md5(input);
}

/** Compares in a time that does not tell where the first difference is. */
export function sameResponse(one: Uint8Array, other: Uint8Array): boolean {
  if (one.length !== other.length) return false;
  let differences = 0;
  for (let place = 0; place < one.length; place++) differences |= one[place]! ^ other[place]!;
  return differences === 0;
}

/** @throws WireError for what is no challenge */
export function readChallenge(identifier: string, challenge: string): ChapChallenge {
  return {
    identifier: readNumber('CHAP_I', identifier, 0, 255),
    challenge: readBinary('CHAP_C', challenge, 1, MAX_CHALLENGE_BYTES),
  };
}

export function emitChallenge({ identifier, challenge }: ChapChallenge): [string, string][] {
  return [
    ['CHAP_I', String(identifier)],
    ['CHAP_C', emitBinary(challenge)],
  ];
}

/** @throws WireError unless it has 16 bytes */
export function readResponse(response: string): Uint8Array {
  return readBinary('CHAP_R', response, CHAP_RESPONSE_BYTES, CHAP_RESPONSE_BYTES);
}

/**
 * Checks that the initiator offers MD5.
 * @throws WireError if it does not
 */
export function checkAlgorithm(algorithms: string): void {
  if (!algorithms.split(',').some((algorithm) => Number(algorithm) === CHAP_MD5)) {
    throw new WireError('text', 'CHAP_A', algorithms, `a list with ${CHAP_MD5} (MD5) in it`);
  }
}
