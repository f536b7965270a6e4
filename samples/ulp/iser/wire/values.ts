/** Values of text keys (RFC 7143, section 6.1). */
import { WireError } from './wire-error.js';

/** Answers that are no values (RFC 7143, 6.2). */
export const ANSWER = {
  NOT_UNDERSTOOD: 'NotUnderstood',
  IRRELEVANT: 'Irrelevant',
  REJECT: 'Reject',
  NONE: 'None',
} as const;

/** @throws WireError unless it is Yes or No */
export function readBoolean(key: string, value: string): boolean {
  if (value === 'Yes') return true;
  if (value === 'No') return false;
  throw new WireError('text', key, value, 'Yes or No');
}

export function emitBoolean(value: boolean): string {
  return value ? 'Yes' : 'No';
}

/**
 * A number, decimal or in hex.
 * @throws WireError unless it is one from `lowest` to `highest`
 */
export function readNumber(key: string, value: string, lowest: number, highest: number): number {
  const isNumber = /^(0|[1-9][0-9]{0,9}|0[xX][0-9a-fA-F]{1,8})$/.test(value);
  const number = isNumber ? Number(value) : NaN;
  if (!(number >= lowest && number <= highest)) {
    throw new WireError('text', key, value, `${lowest} to ${highest}`);
  }
  return number;
}

/** Values of a list, the most wanted first. */
export function readList(value: string): string[] {
  return value.split(',');
}

/** Bytes in hex. */
export function emitBinary(bytes: Uint8Array): string {
  return `0x${Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}

/**
 * Bytes in hex (0x) or base64 (0b).
 * @throws WireError unless there are `lowest` to `highest` of them
 */
export function readBinary(
  key: string,
  value: string,
  lowestBytes: number,
  highestBytes: number,
): Uint8Array {
  const bytes = /^0x/i.test(value)
    ? fromHex(value.slice(2))
    : /^0b/i.test(value)
      ? fromBase64(value.slice(2))
      : undefined;
  if (!bytes || bytes.length < lowestBytes || bytes.length > highestBytes) {
    const limit = `0x and hex, or 0b and base64, of ${lowestBytes} to ${highestBytes} bytes`;
    throw new WireError('text', key, value, limit);
  }
  return bytes;
}

function fromHex(digits: string): Uint8Array | undefined {
  if (!/^[0-9a-f]+$/i.test(digits)) return undefined;
  // Of an odd number of digits the first byte has one.
  const even = digits.length % 2 === 0 ? digits : `0${digits}`;
  return Uint8Array.from({ length: even.length / 2 }, (_, place) =>
    parseInt(even.slice(2 * place, 2 * place + 2), 16),
  );
}

function fromBase64(digits: string): Uint8Array | undefined {
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(digits) || digits.length % 4 !== 0) return undefined;
  return Uint8Array.from(atob(digits), (character) => character.charCodeAt(0));
}
