/** The memory of a connection by the names of what is in it (see the tables of its base). */
import type { QueuePairInit, Slab } from '../../../core/spi/index.js';
import { QueuePairMemory, REQUEST_ROW, TIME } from '../queue-pair/queue-pair-memory.js';

/** Whether a request puts nothing on the wire: going back does not repeat what is done. */
export const LOCAL = { NO: 0, TO_DO: 1, DONE: 2 } as const;

/** Never so far; of a deadline, none. Times are in microseconds. */
export const NEVER_YET = -Infinity;
export const NO_DEADLINE = Infinity;

export class RcMemory extends QueuePairMemory {
  /** @param receives the queue pair has a receive ring of its own */
  constructor(slab: Slab, init: QueuePairInit, receives: boolean) {
    super(slab, init, { connected: true, receives });
    this.timedAtUs = NEVER_YET;
    this.roundAtUs = NEVER_YET;
    this.loweredAtUs = NEVER_YET;
    this.backAtUs = NEVER_YET;
    this.shortestUs = Infinity;
    this.ackDeadlineUs = NO_DEADLINE;
    this.probeDeadlineUs = NO_DEADLINE;
    this.lastHintUs = NEVER_YET;
    this.ackTimeoutUs = Infinity;
    this.setTime(TIME.SENT_AT, NEVER_YET);
  }

  // --- requests begun, by slot of the send ring --------------------------------------------------

  /** PSN of its first packet. */
  firstPsn(slot: number): number {
    return this.words[this.requestAt(slot) + REQUEST_ROW.FIRST_PSN]!;
  }

  setFirstPsn(slot: number, psn: number): void {
    this.words[this.requestAt(slot) + REQUEST_ROW.FIRST_PSN] = psn;
  }

  /** PSNs that it uses. */
  packets(slot: number): number {
    return this.words[this.requestAt(slot) + REQUEST_ROW.PACKETS]!;
  }

  /** Of its message. */
  lengthBytes(slot: number): number {
    return this.words[this.requestAt(slot) + REQUEST_ROW.LENGTH]!;
  }

  /** LOCAL. */
  local(slot: number): number {
    return this.words[this.requestAt(slot) + REQUEST_ROW.LOCAL]!;
  }

  /** What puts nothing on the wire has been done. */
  setDone(slot: number): void {
    this.words[this.requestAt(slot) + REQUEST_ROW.LOCAL] = LOCAL.DONE;
  }

  setSize(slot: number, packets: number, lengthBytes: number, local: number): void {
    const { words } = this;
    const at = this.requestAt(slot);
    words[at + REQUEST_ROW.PACKETS] = packets;
    words[at + REQUEST_ROW.LENGTH] = lengthBytes;
    words[at + REQUEST_ROW.LOCAL] = local;
  }

  private requestAt(slot: number): number {
    return this.firstRequest + slot * REQUEST_ROW.WORDS;
  }

  // --- times ------------------------------------------------------------------------------------

  private time(time: number): number {
    return this.doubles[this.firstTime + time]!;
  }

  private setTime(time: number, us: number): void {
    this.doubles[this.firstTime + time] = us;
  }

  /** When the packet left that is being timed. */
  get timedAtUs(): number {
    return this.time(TIME.TIMED_AT);
  }

  set timedAtUs(us: number) {
    this.setTime(TIME.TIMED_AT, us);
  }

  /** Since when deliveries are counted. */
  get roundAtUs(): number {
    return this.time(TIME.ROUND_AT);
  }

  set roundAtUs(us: number) {
    this.setTime(TIME.ROUND_AT, us);
  }

  /** When the window was lowered. */
  get loweredAtUs(): number {
    return this.time(TIME.LOWERED_AT);
  }

  set loweredAtUs(us: number) {
    this.setTime(TIME.LOWERED_AT, us);
  }

  /** When the requester went back. */
  get backAtUs(): number {
    return this.time(TIME.BACK_AT);
  }

  set backAtUs(us: number) {
    this.setTime(TIME.BACK_AT, us);
  }

  /** The shortest round trip; Infinity before the first. */
  get shortestUs(): number {
    return this.time(TIME.SHORTEST);
  }

  set shortestUs(us: number) {
    this.setTime(TIME.SHORTEST, us);
  }

  /** The usual round trip, and how far one is off. */
  get smoothedUs(): number {
    return this.time(TIME.SMOOTHED);
  }

  set smoothedUs(us: number) {
    this.setTime(TIME.SMOOTHED, us);
  }

  get deviationUs(): number {
    return this.time(TIME.DEVIATION);
  }

  set deviationUs(us: number) {
    this.setTime(TIME.DEVIATION, us);
  }

  /** Until when an acknowledgement is awaited; Infinity: none is. */
  get ackDeadlineUs(): number {
    return this.time(TIME.ACK_DEADLINE);
  }

  set ackDeadlineUs(us: number) {
    this.setTime(TIME.ACK_DEADLINE, us);
  }

  /** When a tail-loss probe is due. */
  get probeDeadlineUs(): number {
    return this.time(TIME.PROBE_DEADLINE);
  }

  set probeDeadlineUs(us: number) {
    this.setTime(TIME.PROBE_DEADLINE, us);
  }

  /** Local ACK timeout; Infinity waits for ever. */
  get ackTimeoutUs(): number {
    return this.time(TIME.ACK_TIMEOUT);
  }

  set ackTimeoutUs(us: number) {
    this.setTime(TIME.ACK_TIMEOUT, us);
  }

  /** The last hint of the network that was heeded. */
  get lastHintUs(): number {
    return this.time(TIME.LAST_HINT);
  }

  set lastHintUs(us: number) {
    this.setTime(TIME.LAST_HINT, us);
  }
}
