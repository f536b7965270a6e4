/** Decides whether a device that may poll its port does. No clock: the time is passed in. */
import { LIMITS } from './limits.js';

const ADAPTIVE_WAIT_US = LIMITS.ADAPTIVE_WAIT_US.value;
const POLL_TRIAL_US = LIMITS.POLL_TRIAL_US.value;
const POLL_TRIAL_COMPLETIONS = LIMITS.POLL_TRIAL_COMPLETIONS.value;
const POLL_STAY_US = LIMITS.POLL_STAY_US.value;
const MAX_POLL_STAY_US = LIMITS.MAX_POLL_STAY_US.value;
const POLL_FORGET_PERCENT = LIMITS.POLL_FORGET_PERCENT.value;
const POLL_GAIN_PERCENT = LIMITS.POLL_GAIN_PERCENT.value;

/** The gain of polling. */
export interface Gain {
  /** The device polls at present. */
  readonly pays: boolean;
  /** Completions have come. */
  onCompletions(count: number, nowUs: number): void;
}

/**
 * Learns whether polling pays, by trying: the device polls for a while, sleeps for a while, and
 * goes on as completions came faster. A busy neighbour, a quota of CPU and a peer on the same core
 * all show in that.
 */
export class PollGain implements Gain {
  /** The device polls at present. It sleeps first: V8 compiles young code on other cores. */
  pays = false;
  /** It tries the other way for a window of time. */
  private tries = false;
  /** The way that was found to be better. */
  private chosen = false;
  private windowEndUs = 0;
  private stayEndUs = 0;
  private stayUs: number = POLL_STAY_US;
  private lastUs = 0;
  private spentUs = 0;
  private completions = 0;
  /** Microseconds a completion: of the best windows of sleeping, and of the last one of polling. */
  private asleepUs = Infinity;
  private polledUs = Infinity;

  /** Completions have come. */
  onCompletions(count: number, nowUs: number): void {
    if (this.lastUs === 0) this.windowEndUs = this.stayEndUs = nowUs + POLL_TRIAL_US;
    // A longer wait is one for the consumer or the peer, and says nothing.
    else this.spentUs += Math.min(nowUs - this.lastUs, ADAPTIVE_WAIT_US);
    this.lastUs = nowUs;
    this.completions += count;
    if (nowUs >= this.windowEndUs && this.completions >= POLL_TRIAL_COMPLETIONS) this.judge(nowUs);
  }

  /** A window ends. */
  private judge(nowUs: number): void {
    const each = this.spentUs / this.completions;
    // One window that others have spoilt must not speak for polling: the best one is remembered.
    if (this.pays) this.polledUs = each;
    else this.asleepUs = Math.min(each, (this.asleepUs * POLL_FORGET_PERCENT) / 100);
    this.spentUs = this.completions = 0;
    this.windowEndUs = nowUs + POLL_TRIAL_US;
    const gains = this.polledUs < this.asleepUs * (POLL_GAIN_PERCENT / 100);
    if (this.tries) this.choose(gains, nowUs);
    else if (nowUs >= this.stayEndUs || (this.pays && !gains)) {
      this.tries = true;
      this.pays = !this.pays;
    }
  }

  private choose(polls: boolean, nowUs: number): void {
    const same = polls === this.chosen;
    this.stayUs = same ? Math.min(this.stayUs * 2, MAX_POLL_STAY_US) : POLL_STAY_US;
    this.stayEndUs = nowUs + this.stayUs;
    this.chosen = this.pays = polls;
    this.tries = false;
  }
}
