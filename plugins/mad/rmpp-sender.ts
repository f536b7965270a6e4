/**
 * The sending side of an RMPP transfer: runs the rows of rmpp-send-states.ts.
 *
 * The ACK timer is the kernel's (the timeout of the send, 2 s at most), and only it costs retries.
 * Two rules recover sooner, and look to any receiver like an impatient sender. The oldest segment
 * without an ACK is resent when an ACK shows that it is missing. After a few round trips of
 * silence, it is resent together with the newest.
 */
import {
  type Clock,
  MAD_BYTES,
  type MadAddress,
  type Scheduler,
  Timer,
  type Timers,
  WcStatus,
} from '../../core/spi/index.js';
import type { MadPort, PortAddress, WorkRequest } from './port.js';
import type { RmppControl } from './rmpp-control.js';
import type { RmppCounters } from './rmpp-counters.js';
import {
  RMPP_SEND_TABLE,
  type RmppSendAction,
  type RmppSendEvent,
  type RmppSendState,
} from './rmpp-send-states.js';
import { Segmentation } from './rmpp-segments.js';
import type {
  Destination,
  OnTransmitted,
  Transmission,
  TransmissionEnd,
  TransmissionOwner,
} from './transmission.js';
import type { MadHeader } from '../../core/spi/modules/mad-header.js';
import { RMPP_STATUS } from './wire/rmpp-header.js';

/** Segments on the port at a time: other sends need their share of QP1. */
const MAX_IN_FLIGHT = 16;
const MAX_ACK_TIMEOUT_US = 2_000_000;
const FIRST_PROBE_US = 100_000;
const MIN_PROBE_US = 20_000;
const PROBE_ROUND_TRIPS = 4;

export interface RmppSenderServices {
  readonly port: MadPort;
  readonly timers: Timers;
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  readonly counters: RmppCounters;
  readonly control: RmppControl;
}

export interface RmppSenderInit {
  readonly mad: Uint8Array;
  readonly header: MadHeader;
  readonly peer: MadAddress;
  readonly destination: Destination;
  /** The last segment that may be sent before the first ACK. */
  readonly firstWindow: number;
  /** Response timeout of the send: 0 when no response is expected. */
  readonly timeoutUs: number;
  readonly retries: number;
  readonly onTransmitted: OnTransmitted;
  /**
   * Called when it begins to handle MADs from the peer, which it does until its send is reported.
   */
  readonly onStart: (sender: RmppSender) => void;
  readonly onReported: () => void;
}

export class RmppSender implements Transmission {
  readonly isRepeatable = false;
  private readonly segments: Segmentation;
  private readonly headers: Uint8Array;
  private state: RmppSendState = 'SENDING';
  private windowLast: number;
  private lastAcked = 0;
  /** The next segment to send, and the highest one sent so far. */
  private next = 1;
  private highest = 0;
  /** Segments to resend first, and the last one that an ACK has shown to be missing. */
  private readonly again: number[] = [];
  private shownMissing = 0;
  private readonly idle: Segment[] = [];
  private readonly inFlight = new Set<Segment>();
  private end: TransmissionEnd = 'withdrawn';
  private status: WcStatus = WcStatus.SUCCESS;
  private failure: WcStatus = WcStatus.SUCCESS;
  private rmppStatus = 0;
  /** The status to abort with, until the abort is decided. */
  private abortStatus = 0;
  /** The ACK of the last segment, while a response is expected. */
  private lastAck: Uint8Array | undefined;
  private readonly ackTimeoutUs: number;
  private retriesLeft: number;
  private ackDeadlineUs = 0;
  private probeUs = FIRST_PROBE_US;
  private waitingSinceUs = 0;
  private roundTripUs = 0;
  /**
   * ACKs up to this segment give no round-trip time: it is measured already, or segments were
   * resent.
   */
  private timedUpTo = 0;
  private readonly timer = new Timer((nowUs) => this.onTimer(nowUs));

  constructor(
    private readonly services: RmppSenderServices,
    private readonly owner: TransmissionOwner,
    private readonly init: RmppSenderInit,
  ) {
    this.segments = new Segmentation(init.mad, init.header.managementClass);
    this.headers = init.mad.subarray(0, this.segments.headerBytes);
    this.windowLast = init.firstWindow;
    this.retriesLeft = init.retries;
    const { timeoutUs } = init;
    this.ackTimeoutUs =
      timeoutUs === 0 ? MAX_ACK_TIMEOUT_US : Math.min(timeoutUs, MAX_ACK_TIMEOUT_US);
  }

  start(): void {
    this.owner.retain();
    this.init.onStart(this);
    this.sendMore();
  }

  stop(tellPeer: boolean): void {
    this.dispatch(tellPeer ? 'cancel' : 'stop');
  }

  forget(): void {
    this.init.onReported();
  }

  /**
   * Handles an ACK with status 0.
   * @param mad the ACK as received
   * @returns the status of the ABORT to answer with, 0 for none
   */
  acknowledge(mad: Uint8Array, segmentNumber: number, newWindowLast: number): number {
    const { count } = this.segments;
    if (this.lastAcked === count) {
      this.onRepeatedLastAck(mad, segmentNumber);
      return 0;
    }
    if (segmentNumber > count || segmentNumber > this.windowLast) {
      return this.refuse(RMPP_STATUS.SEGMENT_NUMBER_TOO_BIG);
    }
    if (newWindowLast < this.windowLast || segmentNumber < this.lastAcked) return 0;
    const progress = segmentNumber > this.lastAcked || newWindowLast > this.windowLast;
    this.lastAcked = segmentNumber;
    this.windowLast = newWindowLast;
    this.next = Math.max(this.next, segmentNumber + 1);
    if (segmentNumber === count) {
      this.lastAck = mad.slice(0, this.segments.headerBytes);
      this.dispatch('ackedAll');
    } else {
      const missing = this.noteMissing();
      if (progress || missing) this.dispatch('acked');
    }
    return 0;
  }

  /** Aborts the transfer for a violation: `status` goes into the ABORT and the report. */
  refuse(status: number): number {
    this.abortStatus = status;
    this.dispatch('refused');
    return status;
  }

  /** Handles STOP or ABORT with a legal status. */
  abortedByPeer(status: number): void {
    this.abortStatus = status;
    this.dispatch('abortedByPeer');
  }

  /** Handles the completion of a segment. */
  onSegment(segment: Segment, status: WcStatus): void {
    this.inFlight.delete(segment);
    this.idle.push(segment);
    if (status === WcStatus.SUCCESS) this.dispatch('segmentSent');
    else {
      this.failure = status;
      this.dispatch('failed');
    }
    this.endIfDrained();
    this.owner.release();
  }

  get mayRepost(): boolean {
    return this.state === 'SENDING' && !this.owner.unregistering;
  }

  private onRepeatedLastAck(mad: Uint8Array, segmentNumber: number): void {
    if (segmentNumber !== this.segments.count) return;
    this.lastAck = mad.slice(0, this.segments.headerBytes);
    this.dispatch('ackedAll');
  }

  /**
   * Schedules the segment after the ACK again; true if this ACK is the first to show it missing.
   */
  private noteMissing(): boolean {
    const oldest = this.lastAcked + 1;
    if (oldest > this.highest || oldest >= this.next || this.shownMissing === oldest) return false;
    this.shownMissing = oldest;
    this.again.push(oldest);
    return true;
  }

  private onTimer(nowUs: number): void {
    if (nowUs < this.ackDeadlineUs) {
      this.probeUs *= 2;
      this.dispatch('probe');
    } else if (this.retriesLeft > 0) this.dispatch('retry');
    // Giving up reports the send, but a timer may expire inside a consumer's call (`progress`).
    else this.services.scheduler.defer(() => this.giveUp());
  }

  /** Gives up, unless an ACK has made progress meanwhile. */
  private giveUp(): void {
    if (!this.timer.active) this.dispatch('exhausted');
  }

  private dispatch(event: RmppSendEvent): void {
    const row = RMPP_SEND_TABLE[this.state][event];
    if (!row) return;
    this.state = row.next;
    for (const action of row.actions) this.actions[action]();
    this.endIfDrained();
  }

  private endIfDrained(): void {
    if (this.state === 'ENDING' && this.inFlight.size === 0) this.dispatch('drained');
  }

  private readonly actions: Readonly<Record<RmppSendAction, () => void>> = {
    sendMore: () => this.sendMore(),
    resendEnds: () => {
      // If the window is closed, resend the newest: its ACK states the window.
      const newest = this.next - 1;
      this.again.push(Math.min(this.lastAcked + 1, newest), newest);
      this.sendMore();
    },
    resendWindow: () => {
      this.next = this.lastAcked + 1;
      this.sendMore();
    },
    startTimer: () => this.startTimer(),
    stopTimer: () => this.services.timers.stop(this.timer),
    reloadRetries: () => this.reloadRetries(),
    spendRetry: () => {
      this.retriesLeft--;
      this.ackDeadlineUs = 0;
    },
    resultSuccess: () => this.setResult('sent', WcStatus.SUCCESS),
    resultTimeout: () => this.setResult('failed', WcStatus.RESP_TIMEOUT_ERR),
    resultAborted: () => {
      this.setResult('failed', WcStatus.REM_ABORT_ERR);
      this.rmppStatus = this.abortStatus;
    },
    resultFailed: () => this.setResult('failed', this.failure),
    resultWithdrawn: () => this.setResult('withdrawn', WcStatus.WR_FLUSH_ERR),
    withdraw: () => this.withdraw(),
    abortTooManyRetries: () => this.abort(RMPP_STATUS.TOO_MANY_RETRIES),
    abortUnspecified: () => this.abort(RMPP_STATUS.UNSPECIFIED),
    turn: () => this.turn(),
    report: () => {
      this.init.onTransmitted(this.end, this.status, this.rmppStatus);
      this.owner.release();
    },
  };

  private setResult(end: TransmissionEnd, status: WcStatus): void {
    this.end = end;
    this.status = status;
  }

  private sendMore(): void {
    while (this.inFlight.size < MAX_IN_FLIGHT) {
      const number = this.takeNext();
      if (number === 0) break;
      const segment = this.idle.pop() ?? new Segment(this, this.init.destination);
      segment.number = number;
      this.segments.write(number, segment.data);
      if (number <= this.highest) this.noteResent();
      else this.highest = number;
      this.services.counters.segmentsSent++;
      this.inFlight.add(segment);
      this.owner.retain();
      this.services.port.post(segment);
    }
    if (this.inFlight.size === 0) this.dispatch('windowSent');
  }

  /** Applies Karn's rule: after a resend, an ACK of a segment in flight may answer either copy. */
  private noteResent(): void {
    this.services.counters.segmentsResent++;
    this.timedUpTo = this.highest;
  }

  /** The segment to send next, 0 if none may be sent. */
  private takeNext(): number {
    const oldest = Math.min(this.lastAcked + 1, this.windowLast);
    for (let number = this.again.shift(); number !== undefined; number = this.again.shift()) {
      if (number >= oldest && !this.isInFlight(number)) return number;
    }
    return this.next <= Math.min(this.windowLast, this.segments.count) ? this.next++ : 0;
  }

  private isInFlight(number: number): boolean {
    for (const segment of this.inFlight) if (segment.number === number) return true;
    return false;
  }

  private startTimer(): void {
    const { timers, clock } = this.services;
    const nowUs = clock.now();
    if (this.ackDeadlineUs === 0) {
      this.ackDeadlineUs = nowUs + this.ackTimeoutUs;
      this.waitingSinceUs = nowUs;
    }
    timers.start(this.timer, Math.min(this.ackDeadlineUs, nowUs + this.probeUs));
  }

  private reloadRetries(): void {
    if (this.waitingSinceUs > 0 && this.lastAcked > this.timedUpTo) {
      const sample = this.services.clock.now() - this.waitingSinceUs;
      this.roundTripUs = this.roundTripUs === 0 ? sample : (7 * this.roundTripUs + sample) / 8;
    }
    this.timedUpTo = Math.max(this.timedUpTo, this.lastAcked);
    this.waitingSinceUs = 0;
    const { roundTripUs } = this;
    const probeUs = roundTripUs === 0 ? FIRST_PROBE_US : PROBE_ROUND_TRIPS * roundTripUs;
    this.probeUs = Math.max(MIN_PROBE_US, probeUs);
    this.retriesLeft = this.init.retries;
    this.ackDeadlineUs = 0;
  }

  private withdraw(): void {
    const { port } = this.services;
    for (const segment of this.inFlight) {
      if (!port.withdraw(segment)) continue;
      this.inFlight.delete(segment);
      this.owner.release();
    }
  }

  private abort(status: number): void {
    this.services.control.abortOwn(this.headers, this.init.peer, status);
  }

  private turn(): void {
    if (this.lastAck === undefined || this.init.timeoutUs === 0) return;
    this.services.control.ack(this.lastAck, this.init.peer, 0, 1);
  }
}

/** The work request of one segment; reused for another one when it has completed. */
class Segment implements WorkRequest {
  readonly data = new Uint8Array(MAD_BYTES);
  number = 0;
  readonly address: PortAddress;
  readonly qpn: number;
  readonly qkey: number;

  constructor(
    private readonly sender: RmppSender,
    destination: Destination,
  ) {
    this.address = destination.address;
    this.qpn = destination.qpn;
    this.qkey = destination.qkey;
  }

  mayRepost(): boolean {
    return this.sender.mayRepost;
  }

  onComplete(status: WcStatus): void {
    this.sender.onSegment(this, status);
  }
}
