/** The times of a connection, in microseconds, in the memory of its queue pair (see TIME there). */
import { TIME } from './queue-pair-memory.js';
import type { QueuePairMemory } from './queue-pair-memory.js';

/** Never so far; of a deadline, none. */
export const NEVER_YET = -Infinity;
export const NO_DEADLINE = Infinity;

export class RcTimes {
  constructor(private readonly memory: QueuePairMemory) {
    this.timedAtUs = NEVER_YET;
    this.roundAtUs = NEVER_YET;
    this.loweredAtUs = NEVER_YET;
    this.backAtUs = NEVER_YET;
    this.shortestUs = Infinity;
    this.ackDeadlineUs = NO_DEADLINE;
    this.askDeadlineUs = NO_DEADLINE;
    this.lastHintUs = NEVER_YET;
  }

  private get(time: number): number {
    return this.memory.doubles[this.memory.firstTime + time]!;
  }

  private set(time: number, us: number): void {
    this.memory.doubles[this.memory.firstTime + time] = us;
  }

  /** When the packet left that is being timed. */
  get timedAtUs(): number {
    return this.get(TIME.TIMED_AT);
  }

  set timedAtUs(us: number) {
    this.set(TIME.TIMED_AT, us);
  }

  /** Since when deliveries are counted. */
  get roundAtUs(): number {
    return this.get(TIME.ROUND_AT);
  }

  set roundAtUs(us: number) {
    this.set(TIME.ROUND_AT, us);
  }

  /** When the window was lowered. */
  get loweredAtUs(): number {
    return this.get(TIME.LOWERED_AT);
  }

  set loweredAtUs(us: number) {
    this.set(TIME.LOWERED_AT, us);
  }

  /** When the requester went back. */
  get backAtUs(): number {
    return this.get(TIME.BACK_AT);
  }

  set backAtUs(us: number) {
    this.set(TIME.BACK_AT, us);
  }

  /** The shortest round trip; Infinity before the first. */
  get shortestUs(): number {
    return this.get(TIME.SHORTEST);
  }

  set shortestUs(us: number) {
    this.set(TIME.SHORTEST, us);
  }

  /** The usual round trip, and how far one is off. */
  get smoothedUs(): number {
    return this.get(TIME.SMOOTHED);
  }

  set smoothedUs(us: number) {
    this.set(TIME.SMOOTHED, us);
  }

  get deviationUs(): number {
    return this.get(TIME.DEVIATION);
  }

  set deviationUs(us: number) {
    this.set(TIME.DEVIATION, us);
  }

  /** Until when an acknowledgement is awaited; Infinity: none is. */
  get ackDeadlineUs(): number {
    return this.get(TIME.ACK_DEADLINE);
  }

  set ackDeadlineUs(us: number) {
    this.set(TIME.ACK_DEADLINE, us);
  }

  /** Until when the requester waits before it asks. */
  get askDeadlineUs(): number {
    return this.get(TIME.ASK_DEADLINE);
  }

  set askDeadlineUs(us: number) {
    this.set(TIME.ASK_DEADLINE, us);
  }

  /** The last hint of the network that was heeded. */
  get lastHintUs(): number {
    return this.get(TIME.LAST_HINT);
  }

  set lastHintUs(us: number) {
    this.set(TIME.LAST_HINT, us);
  }
}
