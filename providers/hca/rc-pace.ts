/**
 * The pace of an RC requester: what comes back, and when, decides how much may be on the way and
 * how long to wait. The window is one part of it, the round trip time the other.
 */
import { CongestionWindow } from './congestion-window.js';
import { RoundTripTime } from './round-trip-time.js';
import { PSN_MASK, psnAdd, psnDiff } from './wire/psn.js';

const NONE = -1;

export class RcPace {
  readonly window = new CongestionWindow();
  private readonly roundTrip = new RoundTripTime();
  /** PSNs up to here have been counted into the window. */
  private counted = 0;
  /** One after the PSN that is being timed, or NONE; when it left; what was oldest then. */
  private timedEnd = NONE;
  private timedAtUs = 0;
  private timedUna = 0;
  /** When the window was lowered: losses of the round trip after that are the same event. */
  private loweredAtUs = -Infinity;
  /** The PSN that asks after silence. */
  private askedPsn = NONE;
  /** Where the requester went back to, and when. */
  private backPsn = NONE;
  private backAtUs = 0;

  /** @returns the largest window, in packets of `mtuBytes` (see CongestionWindow) */
  begin(mostPackets: number, mtuBytes: number, psn: number): number {
    const most = this.window.begin(mostPackets, mtuBytes);
    this.roundTrip.reset();
    this.counted = psn;
    this.timedEnd = NONE;
    this.loweredAtUs = -Infinity;
    this.askedPsn = NONE;
    this.backPsn = NONE;
    return most;
  }

  /** Longer than an answer takes, by all that is known of it. */
  get timeoutUs(): number {
    return this.roundTrip.timeoutUs;
  }

  /** A packet has left for the first time that asks for an answer; `psn` is the one after it. */
  onAsked(psn: number, una: number, nowUs: number): void {
    if (this.timedEnd !== NONE) return;
    this.timedEnd = psn;
    this.timedAtUs = nowUs;
    this.timedUna = una;
  }

  /** Everything before `una` has been answered. */
  onProgress(una: number, nowUs: number): void {
    const { window } = this;
    if (this.askedPsn !== NONE) {
      // A responder drops what follows a gap, so more than what asked was there already.
      window.onAnswer(psnDiff(una, psnAdd(this.askedPsn, 1)) > 0);
      this.askedPsn = NONE;
    }
    if (this.timedEnd !== NONE && psnDiff(una, this.timedEnd) >= 0) this.endSample(una, nowUs);
    window.onAcknowledged((una - this.counted) & PSN_MASK);
    this.counted = una;
  }

  private endSample(una: number, nowUs: number): void {
    const { roundTrip } = this;
    const roundTripUs = nowUs - this.timedAtUs;
    roundTrip.add(roundTripUs);
    const delivered = (una - this.timedUna) & PSN_MASK;
    this.window.onRoundTrip(delivered, roundTripUs, roundTrip.shortestUs);
    this.timedEnd = NONE;
  }

  /** Packets have been lost. */
  onLoss(nowUs: number): void {
    if (this.askedPsn !== NONE) {
      this.window.onAnswer(false);
      this.askedPsn = NONE;
    } else if (nowUs - this.loweredAtUs >= this.roundTrip.smoothedUs) {
      this.window.onLoss(this.roundTrip.showsQueue);
      this.loweredAtUs = nowUs;
    }
  }

  /** Nothing has come back in time: the packet `una` asks. */
  onSilence(una: number, nowUs: number): void {
    this.window.onSilence(this.roundTrip.showsQueue);
    this.askedPsn = una;
    this.loweredAtUs = nowUs;
  }

  /** What is sent now is sent again: the time of its answer says nothing. */
  onWentBack(una: number, nowUs: number): void {
    this.timedEnd = NONE;
    this.backPsn = una;
    this.backAtUs = nowUs;
  }

  /** Whether a NAK of `una` can only be about what was sent before the requester went back. */
  isEcho(una: number, nowUs: number): boolean {
    const { shortestUs } = this.roundTrip;
    if (una !== this.backPsn || shortestUs === Infinity) return false;
    return nowUs - this.backAtUs < shortestUs;
  }
}
