/** Decides whether a device that may poll its port does. No clock: the time is passed in. */
import { LIMITS } from './limits.js';

const ADAPTIVE_POLL_US = LIMITS.ADAPTIVE_POLL_US.value;
const ADAPTIVE_WAIT_US = LIMITS.ADAPTIVE_WAIT_US.value;
const POLL_TRIAL_US = LIMITS.POLL_TRIAL_US.value;
const POLL_TRIAL_COMPLETIONS = LIMITS.POLL_TRIAL_COMPLETIONS.value;
const LEAST_PERIOD: number = LIMITS.LEAST_POLL_PERIOD.value;
const LEAST_POLL_TRIAL = LIMITS.LEAST_POLL_TRIAL.value;
const MOST_POLL_TRIAL = LIMITS.MOST_POLL_TRIAL.value;
const MOST_PERIOD = LIMITS.MOST_POLL_PERIOD.value;
const POLLING_CORES = LIMITS.POLLING_CORES.value;
const CORES_WINDOWS = LIMITS.CORES_WINDOWS.value;
const POLL_FORGET_PERCENT = LIMITS.POLL_FORGET_PERCENT.value;
const POLL_GAIN_PERCENT = LIMITS.POLL_GAIN_PERCENT.value;

/** The gain of polling. */
export interface Gain {
  /** The device polls at present. */
  readonly pays: boolean;
  /** For so long after each packet, in microseconds. */
  readonly pollUs: number;
  /** Completions have come. */
  onCompletions(count: number, nowUs: number): void;
}

/**
 * Learns whether polling pays, by trying: the device polls for a window of time, sleeps for one,
 * and goes on as completions came faster. A quota of CPU and a peer on the same core show in that.
 * A busy neighbour is looked for first: trials beside one cost more than they tell. Programs of a
 * host try in the same windows: where both sides of a connection sleep, it hardly helps that one of
 * them polls.
 */
export class PollGain implements Gain {
  /** The device polls at present. It sleeps first: V8 compiles young code on other cores. */
  pays = false;
  /**
   * In the first window of a trial the device does not sleep. Two programs that wake each other are
   * on one core: the system moves one of them only if both want to run.
   */
  get pollUs(): number {
    return this.tried === 0 && !this.chosen ? POLL_TRIAL_US : ADAPTIVE_POLL_US;
  }

  /** The way that was found to be better; the other one is tried at times. */
  private chosen = false;
  /** Every so many windows, a power of two, one is a trial. */
  private period = LEAST_PERIOD;
  private window = 0;
  /** Windows of a trial of polling so far, and the time of a completion in the last of them. */
  private tried = 0;
  private triedUs = Infinity;
  private lastUs = 0;
  private spentUs = 0;
  private completions = 0;
  /** Microseconds a completion: of the best windows of sleeping, and of the last one of polling. */
  private asleepUs = Infinity;
  private polledUs = Infinity;

  /** The most cores that others have left, which is forgotten in steps. */
  private coresLeft = 0;

  /**
   * @param originUs the time at 0 of the device's clock, by a clock that all programs share
   * @param countCores cores that no other thread runs on at this moment
   */
  constructor(
    private readonly originUs = 0,
    private readonly countCores = (): number => Infinity,
  ) {}

  /** Completions have come. */
  onCompletions(count: number, nowUs: number): void {
    const window = Math.floor((this.originUs + nowUs) / POLL_TRIAL_US);
    if (this.lastUs === 0) this.window = window;
    // A longer wait is one for the consumer or the peer, and says nothing.
    else this.spentUs += Math.min(nowUs - this.lastUs, ADAPTIVE_WAIT_US);
    this.lastUs = nowUs;
    this.completions += count;
    if (window === this.window || this.completions < POLL_TRIAL_COMPLETIONS) return;
    this.window = window;
    this.judge(this.spentUs / this.completions);
    this.spentUs = this.completions = 0;
  }

  /** A window ends. @param eachUs the time of a completion in it */
  private judge(eachUs: number): void {
    // One window that others have spoilt must not speak for polling: the best one is remembered.
    if (this.pays) this.polledUs = eachUs;
    else this.asleepUs = Math.min(eachUs, (this.asleepUs * POLL_FORGET_PERCENT) / 100);
    const gains = this.polledUs < this.asleepUs * (POLL_GAIN_PERCENT / 100);
    if (this.pays && !this.chosen && !gains && this.goesOn(eachUs)) return;
    if (this.pays !== this.chosen || (this.pays && !gains)) this.choose(gains);
    // What comes less often than the port is polled for would find the device asleep all the same.
    const mayGain = this.chosen || this.asleepUs < ADAPTIVE_POLL_US;
    const tries = mayGain && this.hasRoom() && this.window % this.period === 0;
    this.pays = this.chosen !== tries;
  }

  /** True if both sides can poll without taking a core from others. */
  private hasRoom(): boolean {
    if (this.chosen) return true;
    // At times the peer runs, too, which is no other one: so the most of several moments counts.
    const left = Math.min(this.countCores(), POLLING_CORES);
    this.coresLeft = Math.max(left, this.coresLeft - 1 / CORES_WINDOWS);
    return this.coresLeft > POLLING_CORES - 1;
  }

  /** A trial of polling goes on for some windows, and for as long as its code becomes faster. */
  private goesOn(eachUs: number): boolean {
    const improves = eachUs < this.triedUs * (POLL_GAIN_PERCENT / 100);
    this.triedUs = eachUs;
    this.tried += 1;
    return this.tried < LEAST_POLL_TRIAL || (improves && this.tried < MOST_POLL_TRIAL);
  }

  private choose(polls: boolean): void {
    const same = polls === this.chosen;
    this.period = same ? Math.min(this.period * 2, MOST_PERIOD) : LEAST_PERIOD;
    // What was there before polling stopped to pay may be there no more.
    if (this.chosen && !polls) this.coresLeft = 0;
    this.chosen = polls;
    this.tried = 0;
  }
}
