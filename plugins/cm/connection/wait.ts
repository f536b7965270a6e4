/**
 * The wait for an answer, with retries at growing intervals, or for the end of timewait.
 * An established connection has none.
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
 * Result of an ICMP hint that the peer is unreachable. Any host can forge ICMP, and a link may come
 * up again, so one hint proves nothing. Hints are believed when three have come, each to another
 * message, over at least a second, and no message of the peer in between.
 */
type Hint =
  /** The first hint to the last message: that message is repeated soon. */
  | 'new'
  /** A further hint to the same message. */
  | 'known'
  | 'enough';

class HintTally {
  count = 0;
  private firstUs = 0;
  /** True if the last message has had a hint. */
  private heard = false;

  /** A message was sent or repeated: later hints are to that one. */
  onSent(): void {
    this.heard = false;
  }

  /** The peer has sent a message: earlier hints were wrong. */
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

  /** Text for the consumer. @param what the last hint said */
  verdict(what: string, nowUs: number): string {
    const seconds = ((nowUs - this.firstUs) / 1e6).toFixed(1);
    return `${what}: reported for ${this.count} messages in ${seconds} s, without any answer`;
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
  /** The shortest wait that an MRA has asked for. */
  private mraWaitUs = 0;
  /** True after a hint: the message is repeated before its time. */
  private hastened = false;
  readonly hints = new HintTally();

  constructor(private readonly waiter: Waiter) {
    super();
  }

  /** Call it when a message is sent for the first time. */
  begin(policy: RetryPolicy): void {
    this.policy = policy;
    this.attempt = 0;
    this.mraWaitUs = 0;
    this.hints.forget();
    this.hints.onSent();
  }

  /** Call it when the message is sent again. */
  again(): void {
    this.attempt++;
    this.hints.onSent();
  }

  /** Call it when a hint repeats the message: hints must not use up attempts. */
  repeat(): void {
    this.hints.onSent();
  }

  /** Lengthens the wait, as the peer's MRA asks. */
  extend(waitUs: number): void {
    this.mraWaitUs = Math.max(this.mraWaitUs, waitUs);
  }

  /** How often the message was sent. */
  get attempts(): number {
    return this.attempt + 1;
  }

  /** The length of the wait, from when the message was last sent. */
  get waitUs(): number {
    return Math.max(retryWaitUs(this.policy, this.attempt), this.mraWaitUs);
  }

  start({ timers, clock }: Time, waitUs = this.waitUs): void {
    this.hastened = false;
    timers.start(this, clock.now() + waitUs);
  }

  /** Shortens the wait, if it would last longer. */
  hasten({ timers, clock }: Time): void {
    const soonUs = clock.now() + HINTED_REPEAT_US;
    if (this.deadlineUs <= soonUs) return;
    this.hastened = true;
    timers.start(this, soonUs);
  }

  /** The input to raise at the end of the wait. */
  get outcome(): 'repeat' | 'retry' | 'exhausted' {
    if (this.hastened) return 'repeat';
    return this.attempt < this.policy.retries ? 'retry' : 'exhausted';
  }

  override expire(): void {
    this.waiter.onWaitOver();
  }
}
