/**
 * Limits the packets that a requester has in flight to the capacity of the path and of the peer's
 * receive buffer. It works like TCP Reno (RFC 5681), with one difference, which TCP Veno and
 * Westwood have too: a random loss does not make the window smaller than what a round trip
 * delivers. Go-back-N already pays for every loss by repetition. A loss counts as random if the
 * round trip time shows no queue, losses are not too many, and the window is not that of one of
 * many flows. A loss by a full queue halves the window as usual.
 *
 * - Without a loss so far, it doubles each round trip; then it grows by one packet a round trip.
 * - After silence one packet probes; its answer opens the window again, as at the start. Where
 *   losses are usual, it was the NAK that was lost: the window goes out again at once.
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
 * All of these count packets of this many bytes. Of longer packets fewer are sent, but twice as
 * many bytes: each counts as one, even if it ends a message and is short (1.12 times as fast).
 */
const PACKET_BYTES = 4096;
const LONG_PACKETS = 2;
/** The fewest to begin with, however long they are. */
const INITIAL_LONG_PACKETS = 4;
/** The best of so many round trips, twice over: losses spoil some of the samples. */
const ROUNDS = 16;
/** Packets between two losses are averaged over about so many losses. */
const RUNS = 16;
/** Fewer between two losses are too many losses to be bad luck. */
const LEAST_RUN = 8;
/** Ratio of a round trip time to the shortest one that shows a queue. */
const QUEUE_INFLATION = 1.25;
/** Below this, only this flow uses the path: a window as of many flows is only a low start. */
const IDLE_INFLATION = 1.1;
/** Fewer than that, and a loss is nothing unusual on this path. */
const LOSSY_RUN = 2048;
const NONE = -1;

export class CongestionWindow {
  /** Packets that may be outstanding. */
  packets = 1;
  private most = 1;
  /** Up to here it doubles. */
  private threshold = 1;
  private acknowledged = 0;
  /** The value before the probe; 0 if no probe is running. */
  private before = 0;
  private beforeThreshold = 0;
  /** Packets that fit a path without queues: the most in this period, and in the last one. */
  private fits = 0;
  private fitted = 0;
  private rounds = 0;
  /** Packets since the last loss; and between losses, on average. */
  private run = 0;
  private meanRun = 0;
  private losses = 0;
  /** The run that a silence ended, while the answer may still show that nothing was lost. */
  private doubtfulRun = NONE;
  private byChance = false;
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
    this.run = 0;
    this.meanRun = 0;
    this.losses = 0;
    this.byChance = false;
    return this.most;
  }

  /** True if losses are usual on this path. */
  get lossy(): boolean {
    return this.losses > 0 && this.meanRun < LOSSY_RUN;
  }

  /**
   * Packets that one acknowledgement may answer: on a path with losses fewer, for until one comes
   * the window is that much smaller than what the path takes.
   */
  get ackEvery(): number {
    return this.packets >> (this.lossy ? 4 : 2);
  }

  onAcknowledged(count: number): void {
    this.run += count;
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
  onLoss(inflation: number): void {
    this.endRun();
    this.threshold = this.lowered(inflation);
    this.packets = this.byChance ? Math.min(this.packets, this.threshold) : this.half();
    this.acknowledged = 0;
  }

  /**
   * No answer arrived in time: one packet probes. If none has ever arrived, the silence says
   * nothing about the path's capacity: the window doubles from the answer on, as after the loss of
   * a SYN (RFC 5681, 3.1).
   * @param inflation of the round trip time; Infinity as long as none has been measured
   * @param outstanding packets that have not been acknowledged
   */
  onSilence(inflation: number, outstanding: number): void {
    const first = this.before === 0;
    if (first) {
      // A packet that goes alone, and waits where its peer has no time, looks as if it were lost.
      const alone = outstanding === 1 && this.packets > 1;
      this.doubtfulRun = alone ? NONE : this.run;
      if (!alone) this.endRun();
      this.before = this.packets;
      this.beforeThreshold = this.threshold;
      if (inflation < Infinity) this.threshold = this.lowered(inflation);
    }
    const nakLost = first && this.byChance && this.lossy;
    this.packets = nakLost ? Math.min(this.packets, this.threshold) : 1;
    this.acknowledged = 0;
    if (nakLost) this.doubtfulRun = NONE;
  }

  /**
   * The peer has answered.
   * @param wasLate the packets sent before have arrived: they were not lost, only late
   */
  onAnswer(wasLate: boolean): void {
    if (this.before === 0) return;
    if (wasLate) {
      this.packets = this.before;
      this.threshold = this.beforeThreshold;
      this.resumeRun();
    } else if (this.byChance) this.packets = Math.min(this.before, this.threshold);
    else this.packets = Math.min(LEAST_PACKETS, this.most);
    this.before = 0;
  }

  private endRun(): void {
    if (this.losses < RUNS) this.losses += 1;
    this.meanRun += (this.run - this.meanRun) / this.losses;
    this.run = 0;
  }

  /** Continues the last run, as if it had not been counted: there was no loss. */
  private resumeRun(): void {
    const { doubtfulRun, losses } = this;
    if (doubtfulRun === NONE) return;
    this.meanRun = losses === 1 ? 0 : (this.meanRun * losses - doubtfulRun) / (losses - 1);
    if (losses < RUNS) this.losses -= 1;
    this.run += doubtfulRun;
    this.doubtfulRun = NONE;
  }

  private half(): number {
    return Math.max(this.packets >> 1, Math.min(LEAST_PACKETS, this.most));
  }

  private lowered(inflation: number): number {
    const half = this.half();
    const rare = this.meanRun >= LEAST_RUN;
    const fits = Math.max(this.fits, this.fitted);
    this.byChance = rare && inflation <= QUEUE_INFLATION && fits >= this.fewFlows;
    if (this.byChance) return Math.max(half, fits);
    if (!rare || inflation > IDLE_INFLATION) return half;
    return Math.max(half, Math.min(this.fewFlows, this.most));
  }
}
