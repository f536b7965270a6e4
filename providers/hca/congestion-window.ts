/**
 * How many packets a requester may have outstanding: what the path and the peer's receive buffer
 * take, found out as TCP Reno does (RFC 5681). It doubles each round trip until the first loss, is
 * halved at a loss, and then grows by one packet a round trip. Without that, a receiver with a
 * small socket buffer (212 KiB is what Linux gives without privileges) would lose part of every
 * window.
 */
const INITIAL_PACKETS = 64;
/** Enough that the packet behind a lost one tells of the loss before a timeout does. */
const LEAST_PACKETS = 8;
/**
 * All of these are numbers of packets of so many bytes; of longer ones there are fewer, but twice as
 * many bytes: each counts as one, also where it ends a message and is short (1.12 times as fast).
 */
const PACKET_BYTES = 4096;
const LONG_PACKETS = 2;
/** The fewest, however long they are. */
const INITIAL_LONG_PACKETS = 4;
const LEAST_LONG_PACKETS = 2;

export class CongestionWindow {
  /** Packets that may be outstanding. */
  packets = 1;
  private most = 1;
  private least = 1;
  /** Up to here it doubles. */
  private threshold = 1;
  private acknowledged = 0;

  /**
   * @param most packets of up to 4 KiB, whatever the path takes
   * @returns the same in packets of `mtuBytes`
   */
  begin(most: number, mtuBytes = PACKET_BYTES): number {
    const scale = Math.min(1, (LONG_PACKETS * PACKET_BYTES) / mtuBytes);
    this.most = Math.ceil(most * scale);
    this.threshold = this.most;
    const initial = Math.max(INITIAL_LONG_PACKETS, Math.floor(INITIAL_PACKETS * scale));
    this.least = Math.max(LEAST_LONG_PACKETS, Math.floor(LEAST_PACKETS * scale));
    this.packets = Math.min(initial, this.most);
    this.acknowledged = 0;
    return this.most;
  }

  onAcknowledged(count: number): void {
    if (this.packets >= this.most) return;
    if (this.packets < this.threshold) {
      this.packets = Math.min(this.packets + count, this.most);
      return;
    }
    this.acknowledged += count;
    if (this.acknowledged < this.packets) return;
    this.acknowledged -= this.packets;
    this.packets += 1;
  }

  /** Packets were lost: told once for all of a window. */
  onLoss(): void {
    this.packets = Math.min(Math.max(this.packets >> 1, this.least), this.most);
    this.threshold = this.packets;
    this.acknowledged = 0;
  }
}
