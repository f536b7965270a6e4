/**
 * Which queue pair sends next: those that owe responses, and those that have requests, each with a
 * burst at a time. Responses come first, but for what a lone message to a peer of ours may do
 * without.
 */
import type { HcaParameters } from '../common/parameters.js';
import type { TransmitQueue } from './transmit-queue.js';
import { TurnQueue } from './turn-queue.js';

/**
 * Of each queue pair's responses so many leave before a request, where its peer counts on that: an
 * ACK and an atomic result or two; a READ's answer keeps no request waiting for the end of it.
 */
const PACKETS_AHEAD = 4;

/** A queue pair, as one that has its turns. */
export interface Sender {
  readonly destroyed: boolean;
  /** Its places in the two queues. */
  responsesScheduled: boolean;
  requestsScheduled: boolean;
  /** Puts out up to `budget` packets; true when more could go at once. */
  transmitResponses(budget: number): boolean;
  transmitRequests(budget: number): boolean;
}

/** The HCA's side. */
export interface TurnHost {
  readonly tx: TransmitQueue;
  readonly parameters: HcaParameters;
  requestPump(): void;
}

export class SendTurns {
  private readonly responders = new TurnQueue<Sender>();
  private readonly requesters = new TurnQueue<Sender>();
  private answersFirst = false;
  /** A response is owed that may not leave behind a request. */
  private ahead = false;
  private ackWaits = false;
  private ackLeft = false;

  constructor(private readonly host: TurnHost) {}

  /** @param ahead they may not leave behind requests posted from now on */
  scheduleResponses(qp: Sender, ahead: boolean): void {
    if (ahead) this.ahead = true;
    if (qp.responsesScheduled) return;
    qp.responsesScheduled = true;
    this.responders.push(qp);
    this.host.requestPump();
  }

  /**
   * The same, before every request: a peer is to hear a NAK, and what has arrived, before it hears
   * of the end (a DREQ).
   */
  scheduleFirst(qp: Sender): void {
    this.answersFirst = true;
    this.scheduleResponses(qp, true);
  }

  scheduleRequests(qp: Sender): void {
    if (qp.requestsScheduled) return;
    qp.requestsScheduled = true;
    this.requesters.push(qp);
    this.host.requestPump();
  }

  /** Queue pairs whose turn is to come. */
  get waiting(): number {
    return this.responders.length + this.requesters.length;
  }

  /**
   * Fills the port's arrays once; true when there is more to send than fits. Responses come first,
   * but for one burst of requests: between two of ours, an ACK behind the short SEND that answers
   * leaves in its datagram, or the next time. Other peers may retire what they sent by the answer
   * to it (perftest does), so theirs leaves before it, in the same call. A NAK, and what a queue
   * pair in ERR owes, is in no such company.
   * @param comesBack we send again at once: an ACK can wait for that
   */
  fill(comesBack: boolean): boolean {
    const { responders, requesters, host } = this;
    const { burstPackets } = host.parameters;
    if (requesters.length > 0 && !this.answersFirst) {
      if (this.ahead) this.responseTurns(PACKETS_AHEAD, responders.length);
      this.requestTurn(burstPackets);
      if (this.ackMayWait(comesBack)) return false;
    }
    this.responseTurns(burstPackets, Infinity);
    if (responders.length === 0)
      this.answersFirst = this.ahead = this.ackWaits = this.ackLeft = false;
    while (requesters.length > 0 && responders.length === 0 && this.requestTurn(burstPackets));
    return responders.length > 0 || requesters.length > 0;
  }

  /** @param turns how many at most */
  private responseTurns(packets: number, turns: number): void {
    const { responders, host } = this;
    for (let left = turns; left > 0 && responders.length > 0; left--) {
      if (!host.tx.hasRoomForResponse) return;
      const qp = responders.shift();
      qp.responsesScheduled = false;
      if (!qp.destroyed && qp.transmitResponses(packets)) this.scheduleResponses(qp, this.ahead);
    }
  }

  /**
   * A datagram of two packets takes the system longer (5.1 us and 0.9 more), and the peer waits
   * for the message: when we come back at once it goes alone, and the response the next time.
   */
  private ackMayWait(comesBack: boolean): boolean {
    const { responders, requesters, host } = this;
    const two = host.tx.waiting === 1 && responders.length === 1 && requesters.length === 0;
    return (this.ackWaits = two && comesBack && !this.ahead && !this.ackWaits);
  }

  /**
   * Nothing is to be sent but what the last packets are owed, and the consumer has just been told
   * of them: it may answer in a moment. True once for each.
   */
  leaveAcks(): boolean {
    const { responders, requesters, host } = this;
    const alone = responders.length > 0 && requesters.length + host.tx.waiting === 0;
    if (!alone || this.answersFirst || this.ahead || this.ackLeft) return false;
    this.ackLeft = true;
    return true;
  }

  /** Something is owed that a request may not overtake. */
  get owesAhead(): boolean {
    return this.ahead && this.responders.length > 0;
  }

  /** What `leaveAcks` left has not been sent since. */
  get acksWait(): boolean {
    return this.ackLeft;
  }

  /** A burst of the requester whose turn it is; false when it may not fit. */
  private requestTurn(burstPackets: number): boolean {
    const { tx, parameters } = this.host;
    if (!tx.hasRoom(parameters.maxSge + 1)) return false;
    const qp = this.requesters.shift();
    qp.requestsScheduled = false;
    if (!qp.destroyed && qp.transmitRequests(burstPackets)) this.scheduleRequests(qp);
    return true;
  }
}
