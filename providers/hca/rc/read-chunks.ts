/**
 * How the requester cuts a READ into requests, each with responses that the window takes. What is
 * asked for again is the rest of a chunk as it was, in one request: a responder answers a repeated
 * request only if it lies in one that it has had, and rdma_rxe no longer what comes before the one
 * that it has repeated last of a chunk. So a new size, larger or smaller, begins behind all that
 * has been asked for. Chunks are powers of two of packets and lie on the grid of their size.
 */
import { psnDiff } from '../wire/psn.js';

/** Chunks that share a window at least, when the peer has granted so many READs. */
const LEAST_CHUNKS = 4;
/** More READs in flight than these do not make them smaller. */
const MOST_CHUNKS = 16;

export class RcReadChunks {
  /** Of READs from PSN `since` on, and before it. */
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
