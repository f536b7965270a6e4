/**
 * GIDs and IP addresses. On RoCEv2 a GID is the IP address: IPv6 unchanged, IPv4 as ::ffff:a.b.c.d
 * (IBTA annex A17.4.5). Inside the SPI a GID is 16 bytes; on the packet path, four u32 in
 * big-endian order.
 */
import { show } from '../checks/index.js';

export type Gid = Uint8Array;

/** The four words of a GID, word 0 from bytes 0 to 3. */
export type GidWords = readonly [number, number, number, number];

/** True when the GID is an IPv4-mapped one. */
export function isIpv4Gid(gid: Gid): boolean {
  const [a, b, c] = gidWords(gid);
  return a === 0 && b === 0 && c === 0xffff;
}

/** True when the GID is that of a group: ff00::/8, or 224.0.0.0/4 (rdma_cm's mapping). */
export function isMulticastGid(gid: Gid): boolean {
  return isIpv4Gid(gid) ? (gid[12] ?? 0) >> 4 === 0xe : gid[0] === 0xff;
}

export function gidWords(gid: Gid): GidWords {
  const view = new DataView(gid.buffer, gid.byteOffset, 16);
  return [view.getUint32(0), view.getUint32(4), view.getUint32(8), view.getUint32(12)];
}

export function gidFromWords(words: ArrayLike<number>, at = 0): Gid {
  const gid = new Uint8Array(16);
  const view = new DataView(gid.buffer);
  for (let i = 0; i < 4; i++) view.setUint32(i * 4, words[at + i] ?? 0);
  return gid;
}

export function gidEquals(a: Gid, b: Gid): boolean {
  for (let i = 0; i < 16; i++) if (a[i] !== b[i]) return false;
  return true;
}

/**
 * The GID of an IP address as text.
 * @throws RangeError when the text is neither an IPv4 nor an IPv6 address
 */
export function gidFromIp(text: string): Gid {
  const gid = text.includes(':') ? parseIpv6(text) : mapIpv4(parseIpv4(text));
  if (gid === undefined) throw new RangeError(`not an IP address: ${show(text)}`);
  return gid;
}

/** The IP address of a GID as text: dotted for IPv4-mapped ones, RFC 5952 otherwise. */
export function ipFromGid(gid: Gid): string {
  if (isIpv4Gid(gid)) return gid.subarray(12, 16).join('.');
  const groups: number[] = [];
  for (let i = 0; i < 16; i += 2) groups.push(((gid[i] ?? 0) << 8) | (gid[i + 1] ?? 0));
  const run = longestZeroRun(groups);
  const text = (part: number[]): string => part.map((g) => g.toString(16)).join(':');
  if (run.length < 2) return text(groups);
  return `${text(groups.slice(0, run.start))}::${text(groups.slice(run.start + run.length))}`;
}

function longestZeroRun(groups: readonly number[]): { start: number; length: number } {
  let best = { start: 0, length: 0 };
  for (let i = 0; i < groups.length; i++) {
    let j = i;
    while (groups[j] === 0) j++;
    if (j - i > best.length) best = { start: i, length: j - i };
  }
  return best;
}

function parseIpv4(text: string): number[] | undefined {
  const parts = text.split('.');
  if (parts.length !== 4) return undefined;
  const bytes: number[] = [];
  for (const part of parts) {
    if (!/^(0|[1-9]\d{0,2})$/.test(part) || Number(part) > 255) return undefined;
    bytes.push(Number(part));
  }
  return bytes;
}

function mapIpv4(bytes: number[] | undefined): Gid | undefined {
  return bytes && Uint8Array.from([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, ...bytes]);
}

function parseIpv6(text: string): Gid | undefined {
  const halves = text.split('::');
  if (halves.length > 2) return undefined;
  const left = parseGroups(halves[0] ?? '');
  const right = halves.length === 2 ? parseGroups(halves[1] ?? '') : [];
  if (!left || !right) return undefined;
  const missing = 16 - left.length - right.length;
  if (halves.length === 2 ? missing < 2 : missing !== 0) return undefined;
  return Uint8Array.from([...left, ...new Array<number>(missing).fill(0), ...right]);
}

/** Bytes of the colon-separated groups; the last one may be an IPv4 address. */
function parseGroups(text: string): number[] | undefined {
  if (text === '') return [];
  const bytes: number[] = [];
  const groups = text.split(':');
  for (const [i, group] of groups.entries()) {
    const v4 = i === groups.length - 1 && group.includes('.') ? parseIpv4(group) : undefined;
    if (v4) bytes.push(...v4);
    else if (/^[0-9a-fA-F]{1,4}$/.test(group)) {
      const value = parseInt(group, 16);
      bytes.push(value >> 8, value & 0xff);
    } else return undefined;
  }
  return bytes;
}
