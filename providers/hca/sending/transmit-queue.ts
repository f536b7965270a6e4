/**
 * Packets queued for the port. Descriptors are written straight into the port's arrays and offered
 * in bursts. Packets that the port does not accept stay in place and are offered again first.
 */
import { COPIED_PAYLOAD_BYTES, type PacketPort, TX, TX_SEGMENT } from '../../../core/spi/index.js';
import { FEW_BYTES, type RegionBytes } from '../memory/region.js';
import { writeBth } from '../../../core/spi/wire/bth.js';
import { HEADER_LENGTH_OF } from '../../../core/spi/wire/packet-layout.js';

const TWO_32 = 4294967296;
/** Room for headers in a descriptor. */
const HEADER_BYTES = 4 * (TX.WORDS - TX.HEADER);

export class TransmitQueue {
  /** Over `txPackets`: headers are written through it, big-endian, from where `open` says. */
  readonly view: DataView;
  /** Packets ever opened, and ever taken by the port. */
  built = 0;
  taken = 0;
  private readonly packets: Uint32Array;
  private readonly segments: Uint32Array;
  private readonly capacity: number;
  private readonly segmentCapacity: number;
  private from = 0;
  private count = 0;
  private segmentCount = 0;

  /** @param isThere whether the memory of a region has not been transferred away */
  constructor(
    private readonly port: PacketPort,
    private readonly isThere: (region: number) => boolean,
  ) {
    this.packets = port.txPackets;
    this.segments = port.txSegments;
    this.view = new DataView(this.packets.buffer, this.packets.byteOffset, this.packets.byteLength);
    this.capacity = Math.floor(this.packets.length / TX.WORDS);
    this.segmentCapacity = Math.floor(this.segments.length / TX_SEGMENT.WORDS);
  }

  /** Packets that the port has not taken. */
  get waiting(): number {
    return this.count - this.from;
  }

  /** True if one more packet with up to `segments` segments fits. */
  hasRoom(segments: number): boolean {
    return this.count < this.capacity && this.segmentCount + segments <= this.segmentCapacity;
  }

  /** True if one more response fits: the payload of a READ response may be in two segments. */
  get hasRoomForResponse(): boolean {
    return this.hasRoom(2);
  }

  /**
   * Starts a packet with its BTH; `hasRoom` must have said yes.
   * @param flags `BTH_FLAG` and `bthPad`
   * @returns the byte offset in `view` of its BTH
   */
  open(path: number, opcode: number, flags: number, destinationQpn: number, psn: number): number {
    const at = this.count * TX.WORDS;
    const header = (at + TX.HEADER) * 4;
    writeBth(this.view, header, opcode, flags, destinationQpn, psn);
    this.packets[at + TX.PATH] = path;
    this.packets[at + TX.HEADER_LENGTH] = HEADER_LENGTH_OF[opcode]!;
    this.packets[at + TX.FIRST_SEGMENT] = this.segmentCount;
    this.packets[at + TX.SEGMENT_COUNT] = 0;
    this.count += 1;
    this.built += 1;
    return header;
  }

  /** Adds payload to the packet opened last. */
  addSegment(region: number, offset: number, length: number): void {
    const at = this.segmentCount * TX_SEGMENT.WORDS;
    this.segments[at + TX_SEGMENT.REGION] = region;
    this.segments[at + TX_SEGMENT.OFFSET_LO] = offset >>> 0;
    this.segments[at + TX_SEGMENT.OFFSET_HI] = offset < TWO_32 ? 0 : offset / TWO_32;
    this.segments[at + TX_SEGMENT.LENGTH] = length;
    this.segmentCount += 1;
    this.packets[(this.count - 1) * TX.WORDS + TX.SEGMENT_COUNT]! += 1;
  }

  /**
   * Adds the whole payload of the packet opened last, when it is few bytes: they stand behind the
   * headers. False where it has to be a segment.
   */
  addFew({ view }: RegionBytes, offset: number, length: number): boolean {
    const at = (this.count - 1) * TX.WORDS;
    const headers = this.packets[at + TX.HEADER_LENGTH]!;
    const fits = length <= FEW_BYTES && headers + length <= HEADER_BYTES;
    if (!fits || (length & 3) !== 0) return false;
    const to = (at + TX.HEADER) * 4 + headers;
    for (let i = 0; i < length; i += 4) this.view.setUint32(to + i, view.getUint32(offset + i));
    this.packets[at + TX.HEADER_LENGTH] = headers + length;
    return true;
  }

  /** Adds payload that the port must read at once: it always does so with two segments. */
  addCopied(region: number, offset: number, length: number): void {
    const first = length > COPIED_PAYLOAD_BYTES ? 1 : length;
    this.addSegment(region, offset, first);
    if (first < length) this.addSegment(region, offset + first, length - first);
  }

  /**
   * Makes waiting packets read `length` bytes of a region, from `offset` on, from a copy instead.
   */
  redirect(region: number, offset: number, length: number, copy: number): void {
    if (this.waiting === 0) return;
    const first = this.packets[this.from * TX.WORDS + TX.FIRST_SEGMENT]!;
    for (let segment = first; segment < this.segmentCount; segment++) {
      const at = segment * TX_SEGMENT.WORDS;
      const there =
        this.segments[at + TX_SEGMENT.OFFSET_LO]! +
        this.segments[at + TX_SEGMENT.OFFSET_HI]! * TWO_32;
      const end = there + this.segments[at + TX_SEGMENT.LENGTH]!;
      const inside = there >= offset && end <= offset + length;
      if (this.segments[at + TX_SEGMENT.REGION] !== region || !inside) continue;
      this.segments[at + TX_SEGMENT.REGION] = copy;
      this.segments[at + TX_SEGMENT.OFFSET_LO] = there - offset;
      this.segments[at + TX_SEGMENT.OFFSET_HI] = 0;
    }
  }

  /** Takes back the packet opened last. */
  abort(): void {
    this.count -= 1;
    this.built -= 1;
    this.segmentCount = this.packets[this.count * TX.WORDS + TX.FIRST_SEGMENT]!;
  }

  /** The index of the first packet that the port has not taken. */
  private offer(): number {
    try {
      return this.port.send(this.from, this.count);
    } catch (error) {
      if (this.firstGone(this.from) < 0) throw error;
      return this.offerWhatIsThere();
    }
  }

  /**
   * Leaves out packets that waited so long that their memory has been transferred away. What stands
   * before the first of them may leave twice, which every receiver must bear anyway.
   */
  private offerWhatIsThere(): number {
    let next = this.from;
    for (let gone = this.firstGone(next); gone >= 0; gone = this.firstGone(next)) {
      if (gone > next) next = this.port.send(next, gone);
      if (next < gone) return next;
      next = gone + 1;
    }
    return next < this.count ? this.port.send(next, this.count) : next;
  }

  /** The first packet from `packet` on whose memory is not there, or -1. */
  private firstGone(packet: number): number {
    for (let at = packet; at < this.count; at++) {
      const first = this.packets[at * TX.WORDS + TX.FIRST_SEGMENT]!;
      const end = first + this.packets[at * TX.WORDS + TX.SEGMENT_COUNT]!;
      for (let segment = first; segment < end; segment++) {
        const region = this.segments[segment * TX_SEGMENT.WORDS + TX_SEGMENT.REGION]!;
        if (!this.isThere(region)) return at;
      }
    }
    return -1;
  }

  /** Offers everything to the port; true when all of it was taken. */
  flush(): boolean {
    if (this.count > this.from) {
      const next = this.offer();
      this.taken += next - this.from;
      this.from = next;
    }
    if (this.from < this.count) return false;
    this.from = 0;
    this.count = 0;
    this.segmentCount = 0;
    return true;
  }
}

/**
 * Resources released once no packet in flight refers to them. Regions and paths go back to the
 * port. The memory of queue pairs goes back to the slab: inline payload is read there when its
 * packet leaves.
 */
export class PortReleases {
  private waiting: (() => void)[] = [];

  /** @param onItsWay packets that the port has not taken */
  constructor(private readonly onItsWay: () => number) {}

  /** Runs at once when nothing is in flight. */
  add(release: () => void): void {
    this.waiting.push(release);
    if (this.onItsWay() === 0) this.run();
  }

  /** Nothing is in flight. */
  run(): void {
    if (this.waiting.length === 0) return;
    const { waiting } = this;
    this.waiting = [];
    for (const release of waiting) release();
  }
}
