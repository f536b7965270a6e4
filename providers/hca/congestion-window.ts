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
/** The least after a loss: one that may be lost, and one behind it that tells. */
const LEAST_PACKETS = 2;
/**
 * A window below this is a sign of many flows that share a queue. Those may never see it empty, and
 * take its length for the path's, so all their losses count as a full queue's.
 */
const FEW_FLOWS_PACKETS = 12;
/**
 * All of these are numbers of packets of so many bytes; of longer ones there are fewer, but twice
 * as many bytes: each counts as one, also where it ends a message and is short (1.12 times as fast).
 */
const PACKET_BYTES = 4096;
const LONG_PACKETS = 2;
/** The fewest to begin with, however long they are. */
const INITIAL_LONG_PACKETS = 4;
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
  private fewFlows = FEW_FLOWS_PACKETS;

  /**
   * @param most packets of up to 4 KiB, whatever the path takes
   * @returns the same in packets of `mtuBytes`
   */
  begin(most: number, mtuBytes = PACKET_BYTES): number {
    const scale = Math.min(1, (LONG_PACKETS * PACKET_BYTES) / mtuBytes);
    this.most = Math.ceil(most * scale);
    this.threshold = this.most;
    const initial = Math.max(INITIAL_LONG_PACKETS, Math.floor(INITIAL_PACKETS * scale));
    this.packets = Math.min(initial, this.most);
    this.fewFlows = Math.floor(FEW_FLOWS_PACKETS * scale);
    this.acknowledged = 0;
    this.before = 0;
    this.fits = 0;
    this.fitted = 0;
    this.rounds = 0;
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
    return queued || fits < this.fewFlows ? half : Math.max(half, fits);
  }
}
