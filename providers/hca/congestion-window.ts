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

export class CongestionWindow {
  /** Packets that may be outstanding. */
  packets = 1;
  private most = 1;
  /** Up to here it doubles. */
  private threshold = 1;
  private acknowledged = 0;

  /** @param most packets, whatever the path takes */
  begin(most: number): void {
    this.most = most;
    this.threshold = most;
    this.packets = Math.min(INITIAL_PACKETS, most);
    this.acknowledged = 0;
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
    this.packets = Math.min(Math.max(this.packets >> 1, LEAST_PACKETS), this.most);
    this.threshold = this.packets;
    this.acknowledged = 0;
  }
}
