/** Drives a PacketPort as the software HCA does, with objects instead of words. */
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { type Gid, gidFromWords, type PacketPort, PLACE, RX, TX, TX_SEGMENT } from 'dapl/spi';
import { PATIENCE_MS } from '../suite/pace.js';

export interface SegmentSpec {
  readonly region: number;
  readonly offset: number;
  readonly length: number;
}

export interface PacketSpec {
  readonly path: number;
  readonly header: Uint8Array;
  readonly segments?: readonly SegmentSpec[];
}

export interface ReceivedPacket {
  /** The packet from BTH to pad. */
  readonly bytes: Uint8Array;
  readonly flags: number;
  readonly localGidIndex: number;
  readonly sourceGid: Gid;
  readonly sourcePort: number;
}

/** A header of `bytes` (12 to 48) whose BTH carries a PSN and says how much pad follows. */
export function header(psn: number, padBytes = 0, bytes = 12): Uint8Array {
  const result = new Uint8Array(bytes).map((_, i) => (i * 31 + psn) & 0xff);
  result.set([0x04, padBytes << 4, 0xff, 0xff, 0, 0, 0, 0x11]);
  result.set([0, psn >> 16, psn >> 8, psn], 8);
  return result;
}

export function psnOf(packet: ReceivedPacket): number {
  const [, high = 0, middle = 0, low = 0] = packet.bytes.subarray(8, 12);
  return (high << 16) | (middle << 8) | low;
}

export function describePackets(port: PacketPort, packets: readonly PacketSpec[]): void {
  const headers = new Uint8Array(port.txPackets.buffer, port.txPackets.byteOffset);
  let segment = 0;
  packets.forEach((packet, i) => {
    const { path, segments = [] } = packet;
    port.txPackets.set([path, packet.header.length, segment, segments.length], i * TX.WORDS);
    headers.set(packet.header, (i * TX.WORDS + TX.HEADER) * 4);
    for (const { region, offset, length } of segments) {
      const words = [region, offset >>> 0, Math.floor(offset / 2 ** 32), length];
      port.txSegments.set(words, segment++ * TX_SEGMENT.WORDS);
    }
  });
}

/**
 * Sends all packets, as many at a time as the port's arrays hold, and waits when the port is full.
 * `watch` of this file must have been called before.
 */
export async function sendAll(port: PacketPort, packets: readonly PacketSpec[]): Promise<void> {
  for (let first = 0; first < packets.length;) {
    const burst = burstOf(port, packets.slice(first));
    describePackets(port, burst);
    let next = 0;
    for (let tries = 0; next < burst.length; tries++) {
      assert.ok(tries < 1000, 'the port takes no packets');
      next = port.send(next, burst.length);
      if (next < burst.length) await delay(1);
    }
    first += burst.length;
  }
}

function burstOf(port: PacketPort, packets: readonly PacketSpec[]): readonly PacketSpec[] {
  const mostPackets = Math.floor(port.txPackets.length / TX.WORDS);
  const mostSegments = Math.floor(port.txSegments.length / TX_SEGMENT.WORDS);
  let segments = 0;
  const end = packets.findIndex((packet, i) => {
    segments += packet.segments?.length ?? 0;
    return i > 0 && (i === mostPackets || segments > mostSegments);
  });
  return end < 0 ? packets : packets.slice(0, end);
}

export function takeReceived(port: PacketPort): ReceivedPacket[] {
  const packets: ReceivedPacket[] = [];
  const count = port.receive();
  for (let i = 0; i < count; i++) {
    const words = port.rxPackets.subarray(i * RX.WORDS, (i + 1) * RX.WORDS);
    packets.push({
      bytes: bytesOf(port, words),
      flags: words[RX.FLAGS] ?? 0,
      localGidIndex: words[RX.LOCAL_GID_INDEX] ?? 0,
      sourceGid: gidFromWords(words, RX.SOURCE_GID),
      sourcePort: words[RX.SOURCE_PORT] ?? 0,
    });
  }
  return packets;
}

/** A packet in one piece, with a pad of zeros. */
export function bytesOf(port: PacketPort, words: Uint32Array): Uint8Array {
  const [offset, length, body] = [words[RX.OFFSET]!, words[RX.LENGTH]!, words[RX.BODY]!];
  if (body === 0) return port.rxArena.slice(offset, offset + length);
  const bytes = new Uint8Array(length);
  const pad = (port.rxArena[offset + 1]! >> 4) & 3;
  const region = port.addRegion(bytes.buffer, 0, length);
  place(port, [{ source: body, length: length - pad, region, offset: 0 }]);
  port.removeRegion(region);
  return bytes;
}

/** Receives until `count` packets have arrived, or long enough to be sure that fewer do. */
export async function receiveSome(
  port: PacketPort,
  count: number,
  timeoutMs = PATIENCE_MS,
): Promise<ReceivedPacket[]> {
  const packets: ReceivedPacket[] = [];
  for (const end = Date.now() + timeoutMs; packets.length < count && Date.now() < end;) {
    const more = takeReceived(port);
    packets.push(...more);
    if (more.length === 0) await delay(1);
  }
  return packets;
}

export async function until(condition: () => boolean, what: string): Promise<void> {
  for (const end = Date.now() + PATIENCE_MS; !condition(); await delay(2)) {
    assert.ok(Date.now() < end, `waited in vain for ${what}`);
  }
}

export interface PlacementSpec {
  readonly source: number;
  readonly length: number;
  readonly region: number;
  readonly offset: number;
}

export function place(port: PacketPort, placements: readonly PlacementSpec[]): void {
  placements.forEach(({ source, length, region, offset }, i) => {
    const words = [source, length, region, offset >>> 0, Math.floor(offset / 2 ** 32)];
    port.placements.set(words, i * PLACE.WORDS);
  });
  port.place(placements.length);
}

/** Bytes that depend on the offset and the seed. */
export function pattern(bytes: number, seed = 1): Uint8Array {
  const result = new Uint8Array(bytes);
  let state = seed;
  for (let i = 0; i < bytes; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    result[i] = state >>> 24;
  }
  return result;
}
