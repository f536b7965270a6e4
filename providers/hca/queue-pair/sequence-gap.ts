/**
 * A hole in a sequence of packets, as seen by the side that waits for its first one. Packets behind
 * the hole report it once. They report it again each time that the sender repeats them and the
 * first packets of that attempt are lost, too.
 */
import { psnDiff } from '../wire/psn.js';

/** The number of packets by which one may overtake another. */
const REORDERED = 3;

export class SequenceGap {
  private known = false;
  /** The packet that told of it, and the last one that came too early. */
  private toldBy = 0;
  private last = 0;

  /** The first packet has come. */
  close(): void {
    this.known = false;
  }

  /** Opens the gap at a refused packet: packets in flight behind it are part of the same event. */
  open(psn: number): void {
    this.known = true;
    this.toldBy = psn;
    this.last = psn;
  }

  /**
   * Decides whether a packet that arrives too early is news. It is if the hole is new, if this
   * packet has reported it before, or if its PSN is so far behind the last that no other order of
   * the same packets explains it.
   */
  isNews(psn: number): boolean {
    const again = psnDiff(psn, this.toldBy) <= 0 || psnDiff(psn, this.last) < -REORDERED;
    if (!this.known || again) {
      this.open(psn);
      return true;
    }
    this.last = psn;
    return false;
  }
}
