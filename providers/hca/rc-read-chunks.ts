/**
 * How the requester cuts a READ into requests, each with responses that the window takes. Chunks
 * are powers of two of packets and lie on the grid of their size, so that a smaller one is always a
 * part of a larger one: a responder answers a repeated request only if it lies in one that it has
 * had. So they may become smaller at any time; larger ones begin behind all that has been asked
 * for.
 */
import { psnDiff } from './wire/psn.js';

/** Chunks that share a window at least, when the peer has granted so many READs. */
const LEAST_CHUNKS = 4;
/** More READs in flight than these do not make them smaller. */
const MOST_CHUNKS = 16;

export class RcReadChunks {
  /** Of READs from PSN `since` on, and before it. */
  private packets = 1;
  private packetsBefore = 1;
  private since = 0;
  private most = 1;
  private share = 1;

  /**
   * @param windowPackets the largest window
   * @param depth READs that the peer has granted
   */
  begin(windowPackets: number, depth: number, psn: number): void {
    const granted = Math.max(depth, 1);
    this.most = powerOfTwo(windowPackets / Math.min(granted, MOST_CHUNKS));
    this.share = Math.min(granted, LEAST_CHUNKS);
    this.packets = this.most;
    this.packetsBefore = this.most;
    this.since = psn;
  }

  /** Adapts to the window. `maxPsn` is one after all that has been asked for. */
  fit(windowPackets: number, una: number, maxPsn: number): void {
    const { packets, share } = this;
    if (windowPackets < packets * share && packets > 1) {
      this.packets = Math.min(powerOfTwo(windowPackets / share), this.most);
      this.packetsBefore = Math.min(this.packets, this.packetsBefore);
    } else if (
      packets < this.most &&
      windowPackets >= 2 * packets * share &&
      psnDiff(una, this.since) >= 0
    ) {
      this.packetsBefore = packets;
      this.packets = packets * 2;
      this.since = maxPsn;
    }
  }

  /** One after the last packet of the chunk that `packet` belongs to, with that PSN. */
  end(packet: number, psn: number, packetCount: number): number {
    const size = psnDiff(psn, this.since) < 0 ? this.packetsBefore : this.packets;
    return Math.min((Math.floor(packet / size) + 1) * size, packetCount);
  }
}

/** The largest that is not larger, and at least 1. */
function powerOfTwo(value: number): number {
  return 2 ** Math.floor(Math.log2(Math.max(1, value)));
}
