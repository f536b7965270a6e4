/**
 * State of a device's pacing, and the choice of its next step. The state is updated where it
 * changes; a decision is a lookup in a compiled table. No clock, no I/O.
 */
import { LIMITS } from './limits.js';
import { BEGIN, ROUND } from './pumping.js';
import { BEHIND, BURST, DOORBELL, ORDER } from './sending.js';
import { HANDLER } from './turning.js';

// Detects a peer that reads bulk from our memory, one request after the other. The next request
// arrives as soon as the peer has processed a response: sooner than the system wakes a sleeping
// process. A wake-up costs time of the peer, too, which has more to do than we have.

/** Sending fewer bytes takes less time than a wake-up. */
const BULK_BYTES = LIMITS.BULK_BYTES.value;
const GAP_US = LIMITS.BULK_GAP_US.value;

class ReadStreams {
  private lastUs = -Infinity;
  private nextUntilUs = -Infinity;

  /** Notes that a peer reads `bytes` of our memory. */
  onRead(bytes: number, nowUs: number): void {
    // Those of one burst are parts of one READ.
    if (bytes < BULK_BYTES || nowUs === this.lastUs) return;
    if (nowUs - this.lastUs < GAP_US) this.nextUntilUs = nowUs + GAP_US;
    this.lastUs = nowUs;
  }

  /** The time by which the next request will have arrived, in microseconds; 0: none is expected. */
  nextUs(nowUs: number): number {
    return nowUs < this.nextUntilUs ? this.nextUntilUs : 0;
  }
}

// V8 knows the values of a module's own constants, not those of another module's or an object's.
const EAGER_REQUESTS = LIMITS.EAGER_REQUESTS.value;
const PATIENT_PACKETS = LIMITS.PATIENT_PACKETS.value;
const PATIENT_PACKETS_AHEAD = LIMITS.PATIENT_PACKETS_AHEAD.value;
const PATIENT_PUMPS = LIMITS.PATIENT_PUMPS.value;
const DOORBELLS = DOORBELL.byFacts;
const { LEAVE } = DOORBELL.actions;
const ORDERS = ORDER.byFacts;
const BEHINDS = BEHIND.byFacts;
const { WAIT } = BEHIND.actions;
const BURSTS = BURST.byFacts;
const { SEND } = BURST.actions;
const BEGINS = BEGIN.byFacts;
const { LEAVE_TO_CONSUMER } = BEGIN.actions;
const ROUNDS = ROUND.byFacts;
const { LEAVE_ACKS, WAIT_FOR_CONSUMER } = ROUND.actions;

/** A completion queue, as what the consumer may be due at. */
export interface Shown {
  /**
   * True if the consumer has neither fetched the completions shown nor requested a notification.
   */
  readonly unseen: boolean;
}

/** Work that waits to be sent. */
export interface Waiting {
  readonly responsesWait: boolean;
  /** Or packets that the port has yet to take. */
  readonly requestsWait: boolean;
}

export class Pacer {
  readonly readStreams = new ReadStreams();
  /** Completion queues whose consumer wants the port polled for a while after activity. */
  adaptiveQueues = 0;
  /** The completion queue that was the last one of this round to show completions. */
  shown: Shown | undefined = undefined;
  /** Packets are being received or sent: that must not begin again meanwhile. */
  moving = false;
  /**
   * A single message has arrived. The request posted next may be its answer, and the peer waits
   * for that.
   */
  loneMessage = false;
  /** A response is owed that may not leave behind requests posted from now on. */
  ahead = false;
  /** A response is owed that leaves before every request; it is `ahead`, too. */
  first = false;
  /** The port would take more, but others are to have their turn first. */
  unsent = false;
  /** The port is looked at again at once, unasked: an ACK can wait for that. */
  returns = false;
  /** ACKs are left to the answer of the consumer; if it does not come, they go by themselves. */
  acksLeft = false;
  /** A pump is running: none needs to be requested. */
  private pumping = false;
  /** A pump has been requested, and has not begun. */
  private asked = false;
  /** An ACK has been left to the next look at the port, and has not been sent since. */
  private ackWaited = false;
  /** Requests that doorbells have shown since anything was sent last. */
  private requests = 0;
  /** Pumps left before a slow consumer is no longer waited for. */
  private patience = 0;

  // --- pumps ------------------------------------------------------------------------------------

  /** True if a pump must be requested; marks it as requested. */
  asks(): boolean {
    if (this.pumping || this.asked) return false;
    this.asked = true;
    return true;
  }

  /** Begins a pump; false if one is running. */
  begins(): boolean {
    if (this.pumping) return false;
    this.asked = false;
    this.pumping = true;
    return true;
  }

  /** Begins a look at the port; another one follows at once. False while a pump is running. */
  looks(): boolean {
    if (this.pumping) return false;
    this.pumping = this.returns = true;
    return true;
  }

  /** The pump or the look has ended. */
  ends(): void {
    this.pumping = this.returns = false;
  }

  /** True if a pump receives nothing, to leave time to the consumer: BEGIN. */
  leavesToConsumer(): boolean {
    if (this.patience === 0) return false;
    const leaves = BEGINS[index(true, this.consumerIsDue)] === LEAVE_TO_CONSUMER;
    this.patience = leaves ? this.patience - 1 : 0;
    return leaves;
  }

  /**
   * Chooses the next step of a pump after a round and its handlers: an action of ROUND.
   * @param isLast the limit of rounds is reached, or handlers have used up their time
   */
  afterRound(
    moved: boolean,
    handlersRan: boolean,
    { responsesWait, requestsWait }: Waiting,
    untilHandlers: boolean,
    isLast: boolean,
  ): number {
    const { unsent, ahead, acksLeft } = this;
    const next =
      ROUNDS[
        index(moved, handlersRan, unsent, responsesWait, requestsWait) |
          (index(ahead, acksLeft, untilHandlers, this.consumerIsDue, isLast) << 5)
      ]!;
    if (next === LEAVE_ACKS) this.acksLeft = true;
    else if (next === WAIT_FOR_CONSUMER) this.patience = PATIENT_PUMPS;
    return next;
  }

  /**
   * True if a consumer has not fetched the completions of this round: it polls, or continues soon.
   */
  private get consumerIsDue(): boolean {
    return this.shown?.unseen === true;
  }

  // --- sending ----------------------------------------------------------------------------------

  /** Chooses the reaction to this many more requests: an action of DOORBELL. */
  onDoorbell(requests: number): number {
    this.requests += requests;
    const enough = this.requests >= EAGER_REQUESTS;
    const decision = DOORBELLS[index(this.moving, this.loneMessage, enough)]!;
    if (decision !== LEAVE) this.loneMessage = false;
    return decision;
  }

  /** Sending begins. */
  sends(): void {
    this.requests = 0;
    this.moving = true;
  }

  /** Requests wait, and which leave first: an action of ORDER. */
  order(): number {
    return ORDERS[index(this.ahead, this.first)]!;
  }

  /**
   * True if the waiting response is left to the next time: BEHIND.
   * @param lonePair one message has been sent, and one queue pair owes a response
   * @param returns the port is polled again at once
   */
  leavesAck(lonePair: boolean, returns: boolean): boolean {
    const waits = BEHINDS[index(lonePair, returns, this.ahead, this.ackWaited)] === WAIT;
    return (this.ackWaited = waits);
  }

  /** Every response has left. */
  responsesLeft(): void {
    this.first = this.ahead = this.ackWaited = this.acksLeft = false;
  }

  /** True if responses to this many packets leave before the handlers run: BURST. */
  answersAtOnce(packets: number, { responsesWait }: Waiting): boolean {
    const several = packets > PATIENT_PACKETS_AHEAD;
    return BURSTS[index(several, packets > PATIENT_PACKETS, this.ahead && responsesWait)] === SEND;
  }
}

/** The facts of a table as its index, the first one as bit 0. */
function index(a: boolean, b: boolean, c = false, d = false, e = false): number {
  return (a ? 1 : 0) | (b ? 2 : 0) | (c ? 4 : 0) | (d ? 8 : 0) | (e ? 16 : 0);
}

// Limits the time of handlers in one turn of the event loop. The clock is read before each of them,
// except for a few after short ones. No clock: the time is passed in.

const HANDLERS_US = LIMITS.HANDLERS_US.value;
const SHORT_HANDLERS_US = LIMITS.SHORT_HANDLERS_US.value;
const SHORT_HANDLERS = LIMITS.SHORT_HANDLERS.value;
const STARTS = HANDLER.byFacts;
const { START } = HANDLER.actions;

export class HandlerPacer {
  private untilUs = Infinity;
  private lastUs = 0;
  /** Handlers that start without a look at the clock. */
  private unseen = 0;

  /**
   * Begins the handlers of a pump. True if the first one starts.
   * @param goesOn the turn of the event loop is that of the pump before
   */
  begins(nowUs: number, goesOn: boolean): boolean {
    if (!goesOn) this.untilUs = nowUs + HANDLERS_US;
    const starts = this.startsAt(nowUs);
    this.unseen = 0;
    return starts;
  }

  /** True if the next handler starts without a look at the clock. */
  startsUnseen(): boolean {
    if (this.unseen === 0) return false;
    this.unseen -= 1;
    return true;
  }

  /** True if the next handler starts at this time, in microseconds: HANDLER. */
  startsAt(nowUs: number): boolean {
    this.unseen = nowUs - this.lastUs < SHORT_HANDLERS_US ? SHORT_HANDLERS - 1 : 0;
    this.lastUs = nowUs;
    return STARTS[nowUs >= this.untilUs ? 1 : 0] === START;
  }
}
