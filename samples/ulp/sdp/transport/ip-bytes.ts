/** Addresses as Hello has them: 16 bytes, those of IPv4 the last 4 behind zeros. */
import { isIPv4, isIPv6 } from 'node:net';
import type { IpBytes } from '../wire/index.js';

const BYTES = 16;
const GROUPS = 8;

/** @param address numeric, without a zone; what is none gives zeros */
export function ipBytes(address: string): IpBytes {
  const bytes = new Uint8Array(BYTES);
  if (isIPv4(address)) {
    bytes.set(address.split('.').map(Number), BYTES - 4);
  } else if (isIPv6(address)) {
    groupsOf(address).forEach((group, i) => {
      bytes[2 * i] = group >> 8;
      bytes[2 * i + 1] = group & 0xff;
    });
  }
  return bytes;
}

/** Eight numbers of 16 bits. */
function groupsOf(address: string): number[] {
  const [head = '', tail] = (address.split('%')[0] ?? '').split('::');
  const front = numbersOf(head);
  if (tail === undefined) return front;
  const back = numbersOf(tail);
  const zeros = new Array<number>(GROUPS - front.length - back.length).fill(0);
  return [...front, ...zeros, ...back];
}

function numbersOf(text: string): number[] {
  if (text === '') return [];
  return text.split(':').flatMap((part) => {
    if (!isIPv4(part)) return [parseInt(part, 16)];
    const [a = 0, b = 0, c = 0, d = 0] = part.split('.').map(Number);
    return [(a << 8) | b, (c << 8) | d];
  });
}
