/**
 * Event loop rules of a device: when a microtask pumps, when the port is polled unasked, and when
 * the device may sleep. No clock, no I/O: the time is passed in.
 */
import { LIMITS } from './limits.js';
import { type Gain, PollGain } from './poll-gain.js';
import { CONVERSATION, REQUEST, REST, SPIN } from './turning.js';

const MAX_PUMPS_A_TURN = LIMITS.MAX_PUMPS_A_TURN.value;
const TOLD_OF_ONE_MESSAGE = LIMITS.TOLD_OF_ONE_MESSAGE.value;
const POLL_SLICE_US = LIMITS.POLL_SLICE_US.value;
const IDLE_SLICE_US = LIMITS.IDLE_SLICE_US.value;
const REQUESTS = REQUEST.byFacts;
const RESTS = REST.byFacts;
const { SLEEP } = REST.actions;
const CONVERSATIONS = CONVERSATION.byFacts;

/** Reasons to poll a port unasked, or not to. */
export interface Polled {
  /** Completion queues whose consumer wants the port polled for a while after activity. */
  readonly adaptiveQueues: number;
  /** READs of bulk in a row: until when the next one will have come, in microseconds; else 0. */
  readonly readStreams: { nextUs(nowUs: number): number };
  /** ACKs are left to the answer of the consumer: no look before it. */
  readonly acksLeft: boolean;
}

/** A device, at the end of a pump. */
export interface Totals {
  /** Since the device was opened; so are the completions. */
  readonly receivedPackets: number;
  readonly completions: number;
  readonly nowUs: number;
}

export class LoopPacer {
  private pumpsThisTurn = 0;
  private isNewTurn = true;
  /** The last pump has brought completions of several messages. */
  private toldSeveral = false;
  private pollUntilUs = 0;
  /** The time until which the port may be polled without a turn of the event loop. */
  private sliceUntilUs = 0;
  private seenPackets = 0;
  private seenCompletions = 0;

  constructor(
    private readonly polled: Polled,
    private readonly gain: Gain = new PollGain(),
  ) {}

  /** The event loop has turned to the device. */
  turned(): void {
    this.pumpsThisTurn = 0;
    this.isNewTurn = true;
  }

  /** Begins a pump. True if it continues in the turn of the one before. */
  goesOnInTurn(): boolean {
    const goesOn = !this.isNewTurn;
    this.isNewTurn = false;
    return goesOn;
  }

  /** Begins a slice: the device has requested this turn. */
  beginSlice(nowUs: number): void {
    this.sliceUntilUs = nowUs + POLL_SLICE_US;
  }

  /** Chooses the time of a pump that a task requests: an action of REQUEST. */
  onRequest(): number {
    const spent = this.pumpsThisTurn >= MAX_PUMPS_A_TURN;
    if (!spent) this.pumpsThisTurn += 1;
    return REQUESTS[(spent ? 1 : 0) | (this.toldSeveral ? 2 : 0)]!;
  }

  /**
   * A pump has ended. Whether the device sleeps until its deadline: REST.
   * @param busy there is more to do at once
   * @param told completions that it has brought itself, without those of the look before it
   */
  sleeps(busy: boolean, told: number, { receivedPackets, completions, nowUs }: Totals): boolean {
    const { adaptiveQueues, readStreams } = this.polled;
    this.toldSeveral = told > TOLD_OF_ONE_MESSAGE;
    const further = completions - this.seenCompletions;
    this.seenCompletions = completions;
    if (further > 0) this.gain.onCompletions(further, nowUs);
    if (receivedPackets !== this.seenPackets && adaptiveQueues > 0) {
      this.pollUntilUs = nowUs + this.gain.pollUs;
    }
    if (adaptiveQueues === 0) this.pollUntilUs = readStreams.nextUs(nowUs);
    this.seenPackets = receivedPackets;
    const polled = nowUs < this.pollUntilUs;
    const pays = polled && (adaptiveQueues === 0 || this.gain.pays);
    const sleeps = RESTS[(busy ? 1 : 0) | (polled ? 2 : 0) | (pays ? 4 : 0)] === SLEEP;
    if (sleeps) this.pollUntilUs = 0;
    return sleeps;
  }

  /** The time until which a turn polls the port, in microseconds; 0 for no polling. */
  lookUntilUs(nowUs: number): number {
    return this.pollUntilUs > 0 ? Math.min(nowUs + IDLE_SLICE_US, this.pollUntilUs) : 0;
  }

  /**
   * Decides whether the consumer gets the next message before a turn: an action of CONVERSATION.
   * @param answered the pump has sent more than ACKs
   * @param inTurn it was a pump of an event loop turn, not of a microtask
   * @param came something arrived in that turn
   */
  goesOn(nowUs: number, answered: boolean, inTurn: boolean, came: boolean): number {
    const inSlice = this.inSlice(nowUs);
    return CONVERSATIONS[
      (inSlice ? 1 : 0) | (answered ? 2 : 0) | (inTurn ? 4 : 0) | (came ? 8 : 0)
    ]!;
  }

  /** True if the port may be polled before a turn: all microtasks have run. */
  inSlice(nowUs: number): boolean {
    return nowUs < this.sliceUntilUs && nowUs < this.pollUntilUs && !this.polled.acksLeft;
  }
}

// Decides when spinning consumers of this process yield their core. No clock, no I/O.

const SPIN_US = LIMITS.SPIN_US.value;
/** If looks are further apart, the consumer has done something else. */
const IN_A_ROW_US = LIMITS.IDLE_SLICE_US.value;
const SPINS = SPIN.byFacts;
const YIELD = SPIN.actions.REST;

/** One for all devices of a process: a loop over several must not rest while one is busy. */
export class SpinPacer {
  private lookedUs = -Infinity;
  /** Since then there have been looks in a row, all of them in vain. */
  private sinceUs = -Infinity;

  /**
   * A consumer that spins has looked at a device. Whether it rests: SPIN.
   * @param busy something has come, or waits to be sent
   * @param nowUs the time of that look, in microseconds
   */
  rests(busy: boolean, nowUs: number): boolean {
    const inARow = nowUs - this.lookedUs <= IN_A_ROW_US;
    this.lookedUs = nowUs;
    if (busy || !inARow) this.sinceUs = nowUs;
    const long = nowUs - this.sinceUs > SPIN_US;
    return SPINS[(busy ? 1 : 0) | (inARow ? 2 : 0) | (long ? 4 : 0)] === YIELD;
  }
}
