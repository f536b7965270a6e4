/** The READs and atomics of a requester: those in flight, and the chunks that READs go in. */
import { psnDiff } from '../wire/psn.js';

// The requester splits a READ into requests whose responses fit the window. A retry repeats the
// rest of the same chunk in one request: a responder answers a repeat only if it lies within one
// earlier request. After a repeat, rdma_rxe no longer answers for the part of the chunk before it.
// So a new chunk size, larger or smaller, starts after everything already requested. A chunk is a
// power of two of packets, and starts at a multiple of its size.

/** Chunks that share a window at least, when the peer has granted so many READs. */
const LEAST_CHUNKS = 4;
/** More READs in flight than these do not make them smaller. */
const MOST_CHUNKS = 16;

class RcReadChunks {
  /** Packets of READs from PSN `since` on, and before it. */
  private packets: number;
  private packetsBefore: number;
  private since: number;
  private readonly most: number;
  private readonly share: number;

  /**
   * @param windowPackets the largest window
   * @param depth READs that the peer has granted
   * @param psn where the first of them begins, or before it
   */
  constructor(windowPackets: number, depth: number, psn: number) {
    const granted = Math.max(depth, 1);
    this.most = powerOfTwo(windowPackets / Math.min(granted, MOST_CHUNKS));
    this.share = Math.min(granted, LEAST_CHUNKS);
    this.packets = this.most;
    this.packetsBefore = this.most;
    this.since = psn;
  }

  /** Adapts to the window. `maxPsn` is one after all that has been asked for. */
  fit(windowPackets: number, una: number, maxPsn: number): void {
    if (psnDiff(una, this.since) < 0) return; // two sizes at a time are enough
    const { packets, share } = this;
    let fitting = packets;
    if (windowPackets < packets * share) fitting = powerOfTwo(windowPackets / share);
    else if (packets < this.most && windowPackets >= 2 * packets * share) fitting = packets * 2;
    // Without a change `since` follows, so that PSNs never wrap around it.
    this.since = fitting === packets ? una : maxPsn;
    this.packetsBefore = packets;
    this.packets = fitting;
  }

  /** One after the last packet of the chunk that `packet` belongs to, with that PSN. */
  end(packet: number, psn: number, packetCount: number): number {
    const size = psnDiff(psn, this.since) < 0 ? this.packetsBefore : this.packets;
    return Math.min((Math.floor(packet / size) + 1) * size, packetCount);
  }
}

/** The largest that is not larger, and at least 1. */
function powerOfTwo(value: number): number {
  return 1 << (31 - Math.clz32(Math.max(1, value)));
}

/** READ and atomic requests in flight: as many as the peer has granted, a ring of their ends. */
class RcOutstandingReads {
  count = 0;
  /** One after the last PSN of each, oldest first. */
  private readonly ends: Uint32Array;
  private readonly depth: number;
  private head = 0;

  /** @param depth requests that the peer has granted */
  constructor(depth: number) {
    this.depth = Math.max(1, depth);
    this.ends = new Uint32Array(this.depth);
  }

  get full(): boolean {
    return this.count >= this.depth;
  }

  add(end: number): void {
    this.ends[(this.head + this.count) % this.depth] = end;
    this.count += 1;
  }

  /** Every PSN before `una` has been answered. */
  retire(una: number): void {
    while (this.count > 0 && psnDiff(una, this.ends[this.head]!) >= 0) {
      this.head = (this.head + 1) % this.depth;
      this.count -= 1;
    }
  }

  /** They will be asked for again. */
  clear(): void {
    this.head = 0;
    this.count = 0;
  }
}

export class RcInitiator {
  private readonly chunks: RcReadChunks;
  private readonly inFlight: RcOutstandingReads;

  /**
   * @param windowPackets the largest window
   * @param depth READs and atomics that the peer has granted
   * @param psn where the first of them begins, or before it
   */
  constructor(windowPackets: number, depth: number, psn: number) {
    this.chunks = new RcReadChunks(windowPackets, depth, psn);
    this.inFlight = new RcOutstandingReads(depth);
  }

  get idle(): boolean {
    return this.inFlight.count === 0;
  }

  /** True if as many are in flight as the peer has granted. */
  get full(): boolean {
    return this.inFlight.full;
  }

  /** Chunks adapt to the window. `maxPsn` is one after all that has been asked for. */
  fit(windowPackets: number, una: number, maxPsn: number): void {
    this.chunks.fit(windowPackets, una, maxPsn);
  }

  /** One after the last packet of the chunk that `packet` belongs to, with that PSN. */
  chunkEnd(packet: number, psn: number, packetCount: number): number {
    return this.chunks.end(packet, psn, packetCount);
  }

  /** Asked for: the answer ends before PSN `end`. */
  add(end: number): void {
    this.inFlight.add(end);
  }

  /** Every PSN before `una` has been answered. */
  retire(una: number): void {
    this.inFlight.retire(una);
  }

  /** They will be asked for again. */
  clear(): void {
    this.inFlight.clear();
  }
}
