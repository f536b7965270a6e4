/**
 * How many packets a requester may have outstanding: what the path and the peer's receive buffer
 * take. It is found out as TCP Reno does (RFC 5681), with one difference, which TCP Veno and
 * Westwood have too: where the round trip time shows no queue, a loss is one by chance, and the
 * window is not halved below what such a round trip has delivered. Go-back-N pays for every loss
 * by repetition already. A loss by a full queue shows in the round trip time and halves as ever.
 *
 * - Without a loss so far, it doubles each round trip; then it grows by one packet a round trip.
 * - After silence one packet asks; its answer opens the window again, as at the start.
 */
const INITIAL_PACKETS = 64;
/** Enough that the packet behind a lost one tells of the loss before a timeout does. */
const LEAST_PACKETS = 2;
/**
 * A window below this is a sign of many flows that share a queue. Those may never see it empty, and
 * take its length for the path's, so all their losses count as a full queue's.
 */
const FEW_FLOWS_PACKETS = 12;
/** The best of so many round trips, twice over: losses spoil some of the samples. */
const ROUNDS = 16;

export class CongestionWindow {
  /** Packets that may be outstanding. */
  packets = 1;
  private most = 1;
  /** Up to here it doubles. */
  private threshold = 1;
  private acknowledged = 0;
  /** What it was before one packet asked; 0 when none does. */
  private before = 0;
  private beforeThreshold = 0;
  /** Packets that fit a path without queues: the most in this period, and in the last one. */
  private fits = 0;
  private fitted = 0;
  private rounds = 0;

  /** @param most packets, whatever the path takes */
  begin(most: number): void {
    this.most = most;
    this.threshold = most;
    this.packets = Math.min(INITIAL_PACKETS, most);
    this.acknowledged = 0;
    this.before = 0;
    this.fits = 0;
    this.fitted = 0;
    this.rounds = 0;
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

  /**
   * A round trip is over.
   * @param delivered packets that were acknowledged in it
   */
  onRoundTrip(delivered: number, roundTripUs: number, shortestUs: number): void {
    const fits = roundTripUs > 0 ? Math.floor((delivered * shortestUs) / roundTripUs) : delivered;
    if (fits > this.fits) this.fits = fits;
    this.rounds += 1;
    if (this.rounds < ROUNDS) return;
    this.rounds = 0;
    this.fitted = this.fits;
    this.fits = 0;
  }

  /**
   * Packets were lost: told once for all of a round trip.
   * @param queued the round trip time shows a queue
   */
  onLoss(queued: boolean): void {
    this.threshold = this.lowered(queued);
    this.packets = this.threshold;
    this.acknowledged = 0;
  }

  /** Nothing has come back in time: one packet asks. */
  onSilence(queued: boolean): void {
    if (this.before === 0) {
      this.before = this.packets;
      this.beforeThreshold = this.threshold;
      this.threshold = this.lowered(queued);
    }
    this.packets = 1;
    this.acknowledged = 0;
  }

  /**
   * The peer has answered.
   * @param wasLate what had been sent before has arrived: it was not lost, only late
   */
  onAnswer(wasLate: boolean): void {
    if (this.before === 0) return;
    if (wasLate) {
      this.packets = this.before;
      this.threshold = this.beforeThreshold;
    } else this.packets = Math.min(LEAST_PACKETS, this.most);
    this.before = 0;
  }

  private lowered(queued: boolean): number {
    const half = Math.max(this.packets >> 1, Math.min(LEAST_PACKETS, this.most));
    const fits = Math.min(Math.max(this.fits, this.fitted), this.packets);
    return queued || fits < FEW_FLOWS_PACKETS ? half : Math.max(half, fits);
  }
}
