/** Packets that a device has offered to its port: reads, copies and resends them. */
import { COPIED_PAYLOAD_BYTES, type PacketPort, TX, TX_SEGMENT } from '../../core/spi/index.js';

/** A copy of a packet that the port's arrays no longer hold. */
export interface PacketCopy {
  readonly path: number;
  readonly header: Uint8Array;
  /** Region of the copied payload; absent without one. */
  readonly region: number | undefined;
  readonly payloadBytes: number;
}

export class LeavingPackets {
  readonly regions = new Map<number, Uint8Array>();
  readonly paths = new Map<number, { readonly from: string; readonly to: string }>();
  private readonly headers: Uint8Array;
  private readonly copies = new Set<PacketCopy>();
  private bytes = new Uint8Array(0);

  constructor(private readonly port: PacketPort) {
    const { txPackets } = port;
    this.headers = new Uint8Array(txPackets.buffer, txPackets.byteOffset, txPackets.byteLength);
  }

  /** Reads a packet, BTH to pad; valid until the next one is read. */
  read(
    index: number,
  ): { readonly bytes: Uint8Array; readonly from: string; readonly to: string } | undefined {
    const path = this.paths.get(this.port.txPackets[index * TX.WORDS + TX.PATH]!);
    if (path === undefined) return undefined;
    const header = this.header(index);
    const payload = this.payload(index);
    const pad = (header[1]! >> 4) & 3;
    const length = header.length + payload.length + pad;
    if (this.bytes.length < length) this.bytes = new Uint8Array(length);
    const bytes = this.bytes.subarray(0, length);
    bytes.set(header);
    bytes.set(payload, header.length);
    bytes.fill(0, length - pad);
    return { bytes, ...path };
  }

  /** Copies a packet with its payload, which may change later. */
  copy(index: number): PacketCopy {
    const { port, copies } = this;
    const payload = this.payload(index);
    const copy: PacketCopy = {
      path: port.txPackets[index * TX.WORDS + TX.PATH]!,
      header: this.header(index).slice(),
      region: payload.length > 0 ? port.addRegion(payload.buffer, 0, payload.length) : undefined,
      payloadBytes: payload.length,
    };
    copies.add(copy);
    return copy;
  }

  /**
   * Sends a copy. The port accepts it or, like a network under load, loses it.
   * @param last true if the copy is not needed any more
   */
  send(copy: PacketCopy, last: boolean): void {
    const { port } = this;
    if (!this.copies.has(copy)) return;
    this.sendInFront(copy);
    if (!last) return;
    if (copy.region !== undefined) port.removeRegion(copy.region);
    this.copies.delete(copy);
  }

  end(): void {
    for (const { region } of this.copies) if (region !== undefined) this.port.removeRegion(region);
    this.copies.clear();
  }

  /**
   * Sends it from the first entries of the arrays, and restores those: they may hold packets that
   * wait for `onWritable`.
   */
  private sendInFront({ path, header, region, payloadBytes }: PacketCopy): void {
    const { txPackets, txSegments } = this.port;
    const segments = region === undefined ? [] : segmentsOf(region, payloadBytes);
    const packets = txPackets.slice(0, TX.WORDS);
    const lent = txSegments.slice(0, segments.length);
    txPackets.set([path, header.length, 0, segments.length / TX_SEGMENT.WORDS]);
    this.headers.set(header, TX.HEADER * 4);
    txSegments.set(segments);
    try {
      this.port.send(0, 1);
    } catch (error) {
      // The path may have been freed by now, with its queue pair.
      if (!(error instanceof RangeError)) throw error;
    } finally {
      txPackets.set(packets);
      txSegments.set(lent);
    }
  }

  private header(index: number): Uint8Array {
    const at = index * TX.WORDS;
    const start = (at + TX.HEADER) * 4;
    return this.headers.subarray(start, start + this.port.txPackets[at + TX.HEADER_LENGTH]!);
  }

  private payload(index: number): Uint8Array<ArrayBuffer> {
    const { txPackets, txSegments } = this.port;
    const at = index * TX.WORDS;
    const first = txPackets[at + TX.FIRST_SEGMENT]!;
    const count = txPackets[at + TX.SEGMENT_COUNT]!;
    const parts: Uint8Array[] = [];
    for (let i = first; i < first + count; i++) {
      const segment = i * TX_SEGMENT.WORDS;
      const offset =
        txSegments[segment + TX_SEGMENT.OFFSET_LO]! +
        txSegments[segment + TX_SEGMENT.OFFSET_HI]! * 2 ** 32;
      const region = this.regions.get(txSegments[segment + TX_SEGMENT.REGION]!);
      const length = txSegments[segment + TX_SEGMENT.LENGTH]!;
      if (region !== undefined) parts.push(region.subarray(offset, offset + length));
    }
    const bytes = parts.reduce((sum, { length }) => sum + length, 0);
    const whole = new Uint8Array(bytes);
    let to = 0;
    for (const part of parts) {
      whole.set(part, to);
      to += part.length;
    }
    return whole;
  }
}

/**
 * Segments of a payload. A long one is split in two, because a port copies such payloads before
 * `send` returns.
 */
function segmentsOf(region: number, bytes: number): number[] {
  const half = bytes > COPIED_PAYLOAD_BYTES ? bytes >>> 1 : bytes;
  const piece = (offset: number, length: number): number[] => [region, offset, 0, length];
  return half === bytes ? piece(0, bytes) : [...piece(0, half), ...piece(half, bytes - half)];
}
