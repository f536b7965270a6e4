/** Splits a byte stream into PDUs: iSCSI over TCP, without digests (RFC 7143, 11.2). */
import { BHS_BYTES, pduLengths } from './pdu.js';
import { WireError } from './wire-error.js';

/** Data segments are filled up to a multiple of 4 bytes. */
export function padBytes(dataBytes: number): number {
  return -dataBytes & 3;
}

/**
 * Puts PDUs together from chunks of any length. A PDU that lies within one chunk is handed out as a
 * part of it, without a copy.
 */
export class PduStream {
  private chunks: Uint8Array[] = [];
  private bufferedBytes = 0;

  /** @param maxDataBytes the longest data segment that was declared to the peer */
  constructor(public maxDataBytes: number) {}

  /**
   * @returns the PDUs that are complete now: header, additional headers, data; without padding
   * @throws WireError for a data segment that is longer than allowed
   */
  push(chunk: Uint8Array): Uint8Array[] {
    if (chunk.length > 0) {
      this.chunks.push(chunk);
      this.bufferedBytes += chunk.length;
    }
    const pdus: Uint8Array[] = [];
    for (;;) {
      const lengths = this.nextLengths();
      if (!lengths || this.bufferedBytes < lengths.streamBytes) return pdus;
      pdus.push(this.take(lengths.streamBytes).subarray(0, lengths.pduBytes));
    }
  }

  private nextLengths(): { streamBytes: number; pduBytes: number } | undefined {
    if (this.bufferedBytes < BHS_BYTES) return undefined;
    this.gather(BHS_BYTES);
    const { ahsBytes, dataBytes } = pduLengths(this.chunks[0]!);
    if (dataBytes > this.maxDataBytes) {
      const limit = `at most ${this.maxDataBytes}`;
      throw new WireError('length', 'DataSegmentLength', dataBytes, limit);
    }
    const pduBytes = BHS_BYTES + ahsBytes + dataBytes;
    return { pduBytes, streamBytes: pduBytes + padBytes(dataBytes) };
  }

  /** Makes the first chunk at least this long. */
  private gather(lengthBytes: number): void {
    if (this.chunks[0]!.length >= lengthBytes) return;
    const first = new Uint8Array(lengthBytes);
    for (let at = 0; at < lengthBytes;) {
      const chunk = this.chunks.shift()!;
      const taken = Math.min(chunk.length, lengthBytes - at);
      first.set(chunk.subarray(0, taken), at);
      at += taken;
      if (taken < chunk.length) this.chunks.unshift(chunk.subarray(taken));
    }
    this.chunks.unshift(first);
  }

  private take(lengthBytes: number): Uint8Array {
    this.gather(lengthBytes);
    const first = this.chunks[0]!;
    this.bufferedBytes -= lengthBytes;
    if (first.length === lengthBytes) this.chunks.shift();
    else this.chunks[0] = first.subarray(lengthBytes);
    return first.subarray(0, lengthBytes);
  }
}
