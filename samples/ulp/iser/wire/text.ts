/**
 * Text of Login and Text PDUs: key=value pairs, each ended by a NUL (RFC 7143, section 6.1). There
 * is no escape: a value cannot contain a NUL, and binary values are written in hex or base64.
 */
import { WireError } from './wire-error.js';

/** A key and its value, in the order in which they are sent. */
export type TextPair = readonly [key: string, value: string];

/** The longest key (RFC 7143, 6.1). */
export const MAX_KEY_CHARACTERS = 63;
/** The longest value of a key that does not allow more (RFC 7143, 6.1). */
export const MAX_VALUE_BYTES = 255;
/** The longest value of all: 1024 bytes (RFC 7143, 6.1, of CHAP) in hex, with its 0x. */
const MAX_BINARY_CHARACTERS = 2 + 2 * 1024;

/**
 * Keys with values of more than 255 bytes: lists of methods and of addresses are not among them.
 */
const LONG_KEYS: ReadonlySet<string> = new Set(['CHAP_C', 'CHAP_R', 'CHAP_N']);

/** Keys of iSER begin with a small letter, against the grammar. */
const KEY = /^[A-Za-z][-.+@_A-Za-z0-9]*$/;
const encoder = new TextEncoder();

/**
 * Pairs as they are sent.
 * @throws RangeError for a key or value that cannot be sent
 */
export function emitText(pairs: Iterable<TextPair>): Uint8Array {
  let text = '';
  for (const [key, value] of pairs) {
    if (key.length > MAX_KEY_CHARACTERS || !KEY.test(key)) {
      throw new RangeError(`key is ${JSON.stringify(key)}, must be a key of RFC 7143, 6.1`);
    }
    const bytes = encoder.encode(value).length;
    const limit = maxValueBytes(key);
    if (bytes > limit)
      throw new RangeError(`${key} has ${bytes} bytes, must have ${limit} at most`);
    if (value.includes('\0')) throw new RangeError(`${key} has a NUL, which ends a value`);
    text += `${key}=${value}\0`;
  }
  return encoder.encode(text);
}

/**
 * Pairs of a whole text, in order; a key may come again, as TargetName does in SendTargets.
 * @throws WireError for text that is no list of pairs
 */
export function parseText(bytes: Uint8Array): TextPair[] {
  const pairs: TextPair[] = [];
  let start = 0;
  while (start < bytes.length) {
    const end = bytes.indexOf(0, start);
    if (end < 0) throw new WireError('text', 'last byte of the text', bytes.at(-1)!, '0');
    if (end > start) pairs.push(parsePair(bytes.subarray(start, end)));
    // Several NULs in a row: padding that some initiators count as text.
    start = end + 1;
  }
  return pairs;
}

function parsePair(bytes: Uint8Array): TextPair {
  const text = decode(bytes);
  const equals = text.indexOf('=');
  if (equals < 0) throw new WireError('text', 'pair', text, 'key=value');
  const key = text.slice(0, equals);
  if (key.length > MAX_KEY_CHARACTERS || !KEY.test(key)) {
    throw new WireError('text', 'key', key, `a key of at most ${MAX_KEY_CHARACTERS} characters`);
  }
  const valueBytes = bytes.length - key.length - 1;
  const limit = maxValueBytes(key);
  if (valueBytes > limit) {
    throw new WireError('text', `bytes of ${key}`, valueBytes, `at most ${limit}`);
  }
  return [key, text.slice(equals + 1)];
}

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new WireError('text', 'pair', new TextDecoder().decode(bytes), 'UTF-8');
  }
}

function maxValueBytes(key: string): number {
  return LONG_KEYS.has(key) ? MAX_BINARY_CHARACTERS : MAX_VALUE_BYTES;
}

/**
 * Pairs by key.
 * @throws WireError for a key that comes twice, which a negotiation does not allow (RFC 7143, 6.2)
 */
export function uniqueKeys(pairs: Iterable<TextPair>): Map<string, string> {
  const values = new Map<string, string>();
  for (const [key, value] of pairs) {
    if (values.has(key)) throw new WireError('text', 'key', key, 'there once');
    values.set(key, value);
  }
  return values;
}

/** Text that comes in several PDUs, put together up to a limit. */
export class TextAssembly {
  private parts: Uint8Array[] = [];
  private lengthBytes = 0;

  /** @param maxBytes of all parts together */
  constructor(private readonly maxBytes = 65_536) {}

  /** True if parts wait for the last one. */
  get isOpen(): boolean {
    return this.parts.length > 0;
  }

  /**
   * @param isLast false while the C bit is set
   * @returns all bytes, when this was the last part
   * @throws WireError when there are more than the limit
   */
  add(part: Uint8Array, isLast: boolean): Uint8Array | undefined {
    this.lengthBytes += part.length;
    if (this.lengthBytes > this.maxBytes) {
      const { lengthBytes } = this;
      this.clear();
      throw new WireError('text', 'bytes of a text', lengthBytes, `at most ${this.maxBytes}`);
    }
    this.parts.push(part.slice());
    if (!isLast) return undefined;
    const whole = new Uint8Array(this.lengthBytes);
    let at = 0;
    for (const piece of this.parts) {
      whole.set(piece, at);
      at += piece.length;
    }
    this.clear();
    return whole;
  }

  clear(): void {
    this.parts = [];
    this.lengthBytes = 0;
  }
}

/** A text cut for PDUs: at least one part, each of at most this many bytes. */
export function textParts(text: Uint8Array, maxBytes: number): Uint8Array[] {
  const parts = [text.subarray(0, maxBytes)];
  for (let at = maxBytes; at < text.length; at += maxBytes) {
    parts.push(text.subarray(at, at + maxBytes));
  }
  return parts;
}
