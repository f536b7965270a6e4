/**
 * A wait: for an answer, which is asked for at growing intervals, or for the end of timewait.
 * Connections that are established await nothing and have none.
 */
import { type Clock, TimerEntry, type Timers } from '../../../core/spi/index.js';
import {
  DREQ_RETRIES,
  HINTED_REPEAT_US,
  HINTS_NEEDED,
  HINTS_SPAN_US,
  type RetryPolicy,
  retryWaitUs,
} from '../common/timing.js';

/**
 * What the network's hints that a peer does not answer amount to. Any host can forge ICMP, and a
 * link that is down may come up again: one hint proves nothing. They are believed when three have
 * come, each to another message, over a second at least, and the peer has said nothing in between.
 */
type Hint =
  /** The first one to the message sent last: that message is repeated soon. */
  | 'new'
  /** There has been one to that message. */
  | 'known'
  | 'enough';

class HintTally {
  count = 0;
  private firstUs = 0;
  /** One has come to the message sent last. */
  private heard = false;

  /** A message has been sent, or sent again: hints from now on are to that one. */
  onSent(): void {
    this.heard = false;
  }

  /** The peer has said something: what was hinted before is not true. */
  forget(): void {
    this.count = 0;
  }

  add(nowUs: number): Hint {
    if (this.heard) return 'known';
    this.heard = true;
    if (this.count === 0) this.firstUs = nowUs;
    this.count++;
    const enough = this.count >= HINTS_NEEDED && nowUs - this.firstUs >= HINTS_SPAN_US;
    return enough ? 'enough' : 'new';
  }

  /** For people. @param what was hinted last */
  verdict(what: string, nowUs: number): string {
    const seconds = ((nowUs - this.firstUs) / 1e6).toFixed(1);
    return `${what}: said of ${this.count} messages in ${seconds} s, and no answer came`;
  }
}

export interface Waiter {
  onWaitOver(): void;
}

interface Time {
  readonly clock: Clock;
  readonly timers: Timers;
}

export class Wait extends TimerEntry {
  private policy: RetryPolicy = DREQ_RETRIES;
  private attempt = 0;
  /** The least wait that an MRA has asked for. */
  private mraWaitUs = 0;
  /** What is awaited was hinted to be in vain: the message goes again before its time. */
  private hastened = false;
  readonly hints = new HintTally();

  constructor(private readonly waiter: Waiter) {
    super();
  }

  /** A message is sent for the first time. */
  begin(policy: RetryPolicy): void {
    this.policy = policy;
    this.attempt = 0;
    this.mraWaitUs = 0;
    this.hints.forget();
    this.hints.onSent();
  }

  /** It is sent again. */
  again(): void {
    this.attempt++;
    this.hints.onSent();
  }

  /** It is sent again by a hint, which is no further attempt: hints must not use those up. */
  repeat(): void {
    this.hints.onSent();
  }

  /** The peer asks for patience. */
  extend(waitUs: number): void {
    this.mraWaitUs = Math.max(this.mraWaitUs, waitUs);
  }

  /** How often it has been sent. */
  get attempts(): number {
    return this.attempt + 1;
  }

  /** From the last time that it was sent. */
  get waitUs(): number {
    return Math.max(retryWaitUs(this.policy, this.attempt), this.mraWaitUs);
  }

  start({ timers, clock }: Time, waitUs = this.waitUs): void {
    this.hastened = false;
    timers.start(this, clock.now() + waitUs);
  }

  /** It is over soon, if it would not be by itself. */
  hasten({ timers, clock }: Time): void {
    const soonUs = clock.now() + HINTED_REPEAT_US;
    if (this.deadlineUs <= soonUs) return;
    this.hastened = true;
    timers.start(this, soonUs);
  }

  /** What is next when it is over. */
  get outcome(): 'repeat' | 'retry' | 'exhausted' {
    if (this.hastened) return 'repeat';
    return this.attempt < this.policy.retries ? 'retry' : 'exhausted';
  }

  override expire(): void {
    this.waiter.onWaitOver();
  }
}
