/**
 * Chooses the queue pair that sends next. Queue pairs that owe responses and queue pairs with
 * requests take turns, one burst each. `pacing` decides the order.
 */
import type { HcaParameters } from '../common/parameters.js';
import { LIMITS, ORDER, type Pacer } from '../pacing/index.js';
import type { TransmitQueue } from './transmit-queue.js';

/** First in, first out, in a circular array: whose turn it is to send. */
class TurnQueue<T> {
  private items: (T | undefined)[] = new Array<T | undefined>(64).fill(undefined);
  private mask = 63;
  private head = 0;
  private tail = 0;

  get length(): number {
    return this.tail - this.head;
  }

  push(item: T): void {
    if (this.tail - this.head > this.mask) this.grow();
    this.items[this.tail & this.mask] = item;
    this.tail += 1;
  }

  /** The queue must not be empty. */
  shift(): T {
    const at = this.head & this.mask;
    const item = this.items[at] as T;
    this.items[at] = undefined;
    this.head += 1;
    if (this.head === this.tail) {
      this.head = 0;
      this.tail = 0;
    }
    return item;
  }

  private grow(): void {
    const items = new Array<T | undefined>((this.mask + 1) * 2).fill(undefined);
    const { length } = this;
    for (let i = 0; i < length; i++) items[i] = this.items[(this.head + i) & this.mask];
    this.items = items;
    this.mask = items.length - 1;
    this.head = 0;
    this.tail = length;
  }
}

const { ACKS_AHEAD, RESPONSES } = ORDER.actions;
const PACKETS_AHEAD = LIMITS.PACKETS_AHEAD.value;

/** A queue pair, as the scheduler sees it. */
export interface Sender {
  readonly destroyed: boolean;
  /** QP1: its datagrams are few, and connections wait for them. */
  readonly isManagement: boolean;
  /** Its places in the two queues. */
  responsesScheduled: boolean;
  requestsScheduled: boolean;
  /** Puts out up to `budget` packets; true when more could go at once. */
  transmitResponses(budget: number): boolean;
  transmitRequests(budget: number): boolean;
}

/** The HCA's side. */
export interface SchedulerHost {
  readonly tx: TransmitQueue;
  readonly parameters: HcaParameters;
  readonly pacer: Pacer;
  requestPump(): void;
}

export class SendScheduler {
  private readonly responders = new TurnQueue<Sender>();
  private readonly requesters = new TurnQueue<Sender>();
  /** Requesters that send before the others. */
  private readonly managers = new TurnQueue<Sender>();
  private readonly pacer: Pacer;

  constructor(private readonly host: SchedulerHost) {
    this.pacer = host.pacer;
  }

  /** @param ahead they may not leave behind requests posted from now on */
  scheduleResponses(qp: Sender, ahead: boolean): void {
    if (ahead) this.pacer.ahead = true;
    if (qp.responsesScheduled) return;
    qp.responsesScheduled = true;
    this.responders.push(qp);
    this.host.requestPump();
  }

  /**
   * Like `scheduleResponses`, ahead of all requests: a NAK, and ACKs of what has arrived, must
   * precede a DREQ.
   */
  scheduleFirst(qp: Sender): void {
    this.pacer.first = true;
    this.scheduleResponses(qp, true);
  }

  scheduleRequests(qp: Sender): void {
    if (qp.requestsScheduled) return;
    qp.requestsScheduled = true;
    (qp.isManagement ? this.managers : this.requesters).push(qp);
    this.host.requestPump();
  }

  /** Queue pairs whose turn is to come. */
  get waiting(): number {
    return this.responders.length + this.requestersWaiting;
  }

  private get requestersWaiting(): number {
    return this.managers.length + this.requesters.length;
  }

  /**
   * Fills the port's arrays once; true when there is more to send than fits. Responses come first,
   * except for one burst of requests: ACKs of what has arrived must precede a DREQ. MADs come
   * before other requests: they are few, and a new connection must not wait for the data of all
   * others.
   * @param returns we send again at once: an ACK can wait for that
   */
  fill(returns: boolean): boolean {
    const { responders, pacer, host } = this;
    const { burstPackets } = host.parameters;
    const order = this.requestersWaiting > 0 ? pacer.order() : RESPONSES;
    if (order !== RESPONSES) {
      if (order === ACKS_AHEAD) this.responseTurns(PACKETS_AHEAD, responders.length);
      this.requestTurn(burstPackets);
      const left = responders.length === 1 && this.requestersWaiting === 0;
      if (pacer.leavesAck(left && host.tx.waiting === 1, returns)) return false;
    }
    this.responseTurns(burstPackets, Infinity);
    if (responders.length === 0) pacer.responsesLeft();
    while (this.requestersWaiting > 0 && responders.length === 0 && this.requestTurn(burstPackets));
    return this.waiting > 0;
  }

  /** @param turns how many at most */
  private responseTurns(packets: number, turns: number): void {
    const { responders, host } = this;
    for (let left = turns; left > 0 && responders.length > 0; left--) {
      if (!host.tx.hasRoomForResponse) return;
      const qp = responders.shift();
      qp.responsesScheduled = false;
      if (!qp.destroyed && qp.transmitResponses(packets)) this.scheduleResponses(qp, false);
    }
  }

  get responsesWait(): boolean {
    return this.responders.length > 0;
  }

  /** Or packets that the port has yet to take. */
  get requestsWait(): boolean {
    return this.requestersWaiting + this.host.tx.waiting > 0;
  }

  /** A burst of the requester whose turn it is; false when it may not fit. */
  private requestTurn(burstPackets: number): boolean {
    const { tx, parameters } = this.host;
    if (!tx.hasRoom(parameters.maxSge + 1)) return false;
    const qp = (this.managers.length > 0 ? this.managers : this.requesters).shift();
    qp.requestsScheduled = false;
    if (!qp.destroyed && qp.transmitRequests(burstPackets)) this.scheduleRequests(qp);
    return true;
  }
}
