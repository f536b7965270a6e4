/**
 * A connection of SDP, sans-IO: it receives messages and the time, and requests actions of its
 * host. The tables of states.ts, credits.ts and modes.ts say which side may send what in each
 * state, with which credits and in which mode.
 */
import { type Body, Flags, type Message, parseMessage, SdpWireError } from '../wire/index.js';
import { Credits } from './credits.js';
import type { Failure, SessionConfig, SessionHost } from './host.js';
import { Outbox } from './outbox.js';
import { expect, SdpProtocolError } from './protocol-error.js';
import { type Arrived, Sink } from './sink.js';
import { Source } from './source.js';
import type { JobDone } from './write-job.js';

/**
 * Enlarges the receives of this side when the peer asks (ChRcvBuf). The answer states the new size
 * of every posted receive, so it waits until the older receives were used. Receives are never made
 * smaller: messages for the old size may be in flight.
 */
class Resizing {
  private smaller = 0;
  private isPending = false;

  private answerBytes: number;

  constructor(
    private currentBytes: number,
    private readonly maxBytes: number,
  ) {
    this.answerBytes = currentBytes;
  }

  /** Size of newly posted receives. */
  get bytes(): number {
    return this.currentBytes;
  }

  /** Size of every posted receive, as answered to the peer. */
  get answer(): number {
    return this.answerBytes;
  }

  /** True if the answer can be given. */
  get isDue(): boolean {
    return this.isPending && this.smaller === 0;
  }

  /** @param posted receives that are posted */
  onAsked(bytes: number, posted: number): void {
    expect(!this.isPending, () => 'ChRcvBuf, and one has not been answered');
    expect(bytes > 0, () => 'ChRcvBuf of 0 bytes');
    this.isPending = true;
    const target = Math.max(this.currentBytes, Math.min(bytes, this.maxBytes));
    this.smaller = target === this.currentBytes ? 0 : posted;
    this.currentBytes = target;
  }

  /** A message has used a receive: the oldest one. */
  onReceived(): void {
    if (this.smaller === 0) return;
    this.smaller--;
    if (this.smaller === 0) this.answerBytes = this.currentBytes;
  }

  /** The peer has ended sending: the smaller receives stay posted, and the answer says so. */
  onEnded(): void {
    this.smaller = 0;
  }

  onAnswered(): void {
    this.isPending = false;
  }
}

/** The states of a connection, as in TCP: the halves that are open, and the next step. */
type StateName = 'ESTABLISHED' | 'FIN_WAIT' | 'CLOSE_WAIT' | 'LAST_ACK' | 'TIME_WAIT' | 'CLOSED';

type StateEvent = 'DIS_CONN_SENT' | 'DIS_CONN_RECEIVED' | 'CLOSED';

interface StateRule {
  /** True if this side may send data. */
  readonly maySend: boolean;
  /** True if the peer may send data. */
  readonly mayReceive: boolean;
  /** True if the end of the CM's connection is expected: both sides have sent DisConn. */
  readonly isOver: boolean;
  readonly next: Readonly<Partial<Record<StateEvent, StateName>>>;
}

/**
 * The side that sent its DisConn first ends the connection of the CM after the peer's DisConn
 * (TIME_WAIT); the other side waits for that (LAST_ACK). If they cross, both end it.
 */
const STATES: Readonly<Record<StateName, StateRule>> = {
  ESTABLISHED: {
    maySend: true,
    mayReceive: true,
    isOver: false,
    next: { DIS_CONN_SENT: 'FIN_WAIT', DIS_CONN_RECEIVED: 'CLOSE_WAIT', CLOSED: 'CLOSED' },
  },
  FIN_WAIT: {
    maySend: false,
    mayReceive: true,
    isOver: false,
    next: { DIS_CONN_RECEIVED: 'TIME_WAIT', CLOSED: 'CLOSED' },
  },
  CLOSE_WAIT: {
    maySend: true,
    mayReceive: false,
    isOver: false,
    next: { DIS_CONN_SENT: 'LAST_ACK', CLOSED: 'CLOSED' },
  },
  LAST_ACK: { maySend: false, mayReceive: false, isOver: true, next: { CLOSED: 'CLOSED' } },
  TIME_WAIT: { maySend: false, mayReceive: false, isOver: true, next: { CLOSED: 'CLOSED' } },
  CLOSED: { maySend: false, mayReceive: false, isOver: true, next: {} },
};

export class Session {
  /** The sending half of this side. */
  readonly source: Source;
  /** The receiving half of this side. */
  readonly sink: Sink;
  readonly credits: Credits;
  private readonly outbox: Outbox;
  private readonly resizing: Resizing;
  private current: StateName = 'ESTABLISHED';
  private isClosing = false;
  private isLeaving = false;
  private isLinkGone = false;
  private isOver = false;
  private finAt = Infinity;
  private keepAliveMs = 0;
  private heardAt: number;
  private isProbing = false;
  private taken = 0;
  /** `mseqAck` of the message being handled. */
  private ack = 0;
  private isPumping = false;
  private wantsPump = false;
  private tellsReadable = false;

  constructor(
    private readonly host: SessionHost,
    private readonly config: SessionConfig,
  ) {
    const credits = new Credits(config.receives, config.peer.bufs);
    const outbox = new Outbox(host, credits);
    this.credits = credits;
    this.outbox = outbox;
    this.heardAt = host.now();
    this.resizing = new Resizing(config.receiveBytes, config.maxReceiveBytes);
    const isEnding = (): boolean => this.source.isEnding;
    this.sink = new Sink({ host, outbox, config, isEnding });
    this.source = new Source({
      ...{ host, outbox, config },
      covers: (mseq) => credits.isAcknowledged(mseq, this.ack),
      onDisConnSent: () => this.enter('DIS_CONN_SENT'),
      onTaken: (bytes) => {
        this.taken += bytes;
      },
    });
  }

  get state(): StateName {
    return this.current;
  }

  /** Bytes of the consumer that were taken: their memory may be reused. */
  get takenBytes(): number {
    return this.taken;
  }

  /** Time of `host.now()` in milliseconds at which `tick` has work; Infinity for never. */
  get deadline(): number {
    if (this.isOver) return Infinity;
    const { keepAliveMs, isProbing, heardAt } = this;
    const probeAt = keepAliveMs > 0 && !isProbing ? heardAt + keepAliveMs : Infinity;
    return Math.min(this.source.deadline, this.finAt, probeAt);
  }

  /** Starts a write: one at a time, and none after `shutdown`. */
  write(chunks: readonly Uint8Array[], done: JobDone): void {
    this.source.write(chunks, done);
    this.pump();
  }

  /**
   * Sends an urgent byte: the peer is told at once; the byte keeps its place after all earlier
   * writes.
   */
  sendUrgent(byte: number): void {
    this.source.sendUrgent(byte);
    this.pump();
  }

  shutdown(done: JobDone): void {
    this.source.shutdown(done);
    this.pump();
  }

  consume(bytes: number): void {
    this.sink.consume(bytes);
    this.pump();
  }

  /** Ends both halves gracefully. */
  close(): void {
    if (this.isOver || this.isClosing) return;
    this.isClosing = true;
    this.finAt = this.host.now() + this.config.times.finMs;
    this.source.stop();
    this.sink.discard();
    this.source.shutdown(() => undefined);
    this.pump();
  }

  /** Ends the session immediately; the peer is told, if a message can be sent. */
  abort(): void {
    if (this.isOver) return;
    this.sink.dropReady();
    this.reset();
    this.finish();
  }

  setKeepAlive(intervalMs: number): void {
    this.keepAliveMs = intervalMs;
    this.heardAt = this.host.now();
  }

  /** Continues after requests have completed or memory was released. */
  pump(): void {
    if (this.isPumping) {
      this.wantsPump = true;
      return;
    }
    this.isPumping = true;
    try {
      do {
        this.wantsPump = false;
        while (!this.isOver && this.step());
      } while (this.wantsPump && !this.isOver);
    } finally {
      this.isPumping = false;
    }
    this.leaveWhenDone();
    if (!this.tellsReadable) return;
    this.tellsReadable = false;
    this.host.onReadable();
  }

  /**
   * Handles a message.
   * @param slot its receive; `bytes` do not change until that is posted again
   */
  receive(slot: number, bytes: Uint8Array): void {
    if (this.isOver) return;
    this.heardAt = this.host.now();
    this.guard(() => {
      const message = parseMessage(bytes);
      this.credits.onReceived(message.header);
      this.resizing.onReceived();
      this.ack = message.header.mseqAck;
      if (!this.dispatch(message, slot, bytes)) this.repost(slot);
    });
  }

  onReadDone(): void {
    this.guard(() => {
      this.sink.onReadDone();
      this.tellsReadable = true;
    });
  }

  onWriteDone(bytes: number): void {
    this.guard(() => this.source.onWriteDone(bytes));
  }

  onProbeDone(): void {
    this.isProbing = false;
    this.heardAt = this.host.now();
  }

  tick(): void {
    if (this.isOver) return;
    const now = this.host.now();
    const failure = this.source.tick(now);
    if (failure !== undefined) return this.fail(failure);
    if (now >= this.finAt) return this.onFinTimeout();
    if (this.keepAliveMs > 0 && !this.isProbing && now >= this.heardAt + this.keepAliveMs) {
      this.heardAt = now;
      if (this.host.requestsFree > 0) {
        this.isProbing = true;
        this.host.probe();
      }
    }
    this.pump();
  }

  /** The connection of the CM has ended, or is broken. */
  onDisconnected(detail = 'the peer ended the connection without DisConn'): void {
    if (this.isOver) return;
    this.isLinkGone = true;
    this.onReset(detail);
  }

  private onReset(detail: string): void {
    if (STATES[this.current].isOver || this.isClosing) this.finish();
    else this.finish({ code: 'ECONNRESET', detail });
  }

  private step(): boolean {
    if (this.resizing.isDue) {
      const body = { mid: 'CH_RCV_BUF_ACK', bytes: this.resizing.answer } as const;
      if (!this.outbox.control(body)) return false;
      this.resizing.onAnswered();
      return true;
    }
    this.outbox.raise(Flags.REQ_PIPE, this.sink.wantsPipe);
    return this.sink.step() || this.source.step() || this.outbox.update();
  }

  /** @returns true if the receive is kept */
  private dispatch({ header, body, payloadAt }: Message, slot: number, bytes: Uint8Array): boolean {
    const { source, sink } = this;
    if ((header.flags & Flags.REQ_PIPE) !== 0) source.onPipeWanted();
    this.checkHalf(body, bytes.length > payloadAt);
    switch (body.mid) {
      case 'DATA':
      case 'SRC_AVAIL':
      case 'SINK_AVAIL':
        if (body.mid === 'SINK_AVAIL') source.onSinkAvail(body);
        return this.onPayload(body, header.flags, slot, bytes.subarray(payloadAt));
      case 'DIS_CONN':
        sink.onEnded();
        this.resizing.onEnded();
        this.tellsReadable = true;
        this.enter('DIS_CONN_RECEIVED');
        return false;
      case 'ABORT_CONN':
        this.host.disconnect();
        this.onReset('the peer aborted the connection');
        return false;
      case 'SEND_SM':
        source.onRefused();
        return false;
      case 'RDMA_WR_COMPL':
        sink.onWritten(body.bytes);
        this.tellsReadable = true;
        return false;
      case 'RDMA_RD_COMPL':
        source.onRead(body.bytes);
        return false;
      case 'MODE_CHANGE':
        if (body.half === 'RECV') sink.onModeChange(body.mode);
        else source.onModeChange(body.mode);
        return false;
      case 'SRC_AVAIL_CANCEL':
        sink.onSrcCancel();
        return false;
      case 'SINK_AVAIL_CANCEL':
        source.onSinkCancel();
        return false;
      case 'SINK_CANCEL_ACK':
        sink.onOffersCancelled();
        return false;
      case 'CH_RCV_BUF':
        this.resizing.onAsked(body.bytes, this.credits.posted);
        return false;
      case 'CH_RCV_BUF_ACK':
        source.onEnlarged(body.bytes);
        return false;
      case 'SUSP_COMM':
      case 'SUSP_COMM_ACK':
        throw new SdpProtocolError(`${body.mid}: connections are not moved to another service`);
    }
  }

  /** Checks that the half that bytes, SrcAvail and DisConn belong to is open. */
  private checkHalf({ mid }: Body, hasPayload: boolean): void {
    const isOfHalf = hasPayload || mid === 'SRC_AVAIL' || mid === 'DIS_CONN';
    if (!isOfHalf || STATES[this.current].mayReceive) return;
    throw new SdpProtocolError(`${mid} after DisConn`);
  }

  private onPayload(body: Body, flags: number, slot: number, payload: Uint8Array): boolean {
    const isUrgent = (flags & Flags.OOB_PRES) !== 0;
    if (isUrgent && payload.length === 0) {
      throw new SdpProtocolError('OOB_PRES on a message without a payload');
    }
    if (this.sink.isDropping && this.source.isEnded && payload.length > 0) {
      this.reset();
      this.finish();
      return false;
    }
    const length = isUrgent ? payload.length - 1 : payload.length;
    const isKept = length > 0;
    const arrived = this.arrivedIn(slot, payload.subarray(0, length), isKept);
    if (body.mid === 'SRC_AVAIL') {
      this.sink.onSrcAvail(body, payload.length > 0 ? arrived : undefined);
    } else if (payload.length > 0) {
      this.sink.onData(arrived);
    }
    this.tellsReadable ||= isKept;
    if (isUrgent && !this.sink.isDropping) this.host.onUrgent(payload[length] as number);
    return isKept;
  }

  private arrivedIn(slot: number, bytes: Uint8Array, isKept: boolean): Arrived {
    return { bytes, release: () => isKept && this.repost(slot) };
  }

  private repost(slot: number): void {
    if (this.isOver || this.isLeaving) return;
    this.host.repost(slot, this.resizing.bytes);
    this.credits.onPosted();
  }

  /** Runs `work`. A protocol error of the peer ends this connection, and nothing else. */
  private guard(work: () => void): void {
    if (this.isOver) return;
    try {
      work();
    } catch (error) {
      if (!(error instanceof SdpProtocolError || error instanceof SdpWireError)) throw error;
      this.fail({ code: 'EPROTO', detail: error.message });
      return;
    }
    this.pump();
  }

  private enter(event: StateEvent): void {
    this.current = STATES[this.current].next[event] ?? this.current;
    if (STATES[this.current].isOver) this.startFin();
  }

  private startFin(): void {
    this.finAt = Math.min(this.finAt, this.host.now() + this.config.times.finMs);
  }

  /** Ends the connection of the CM when both sides have ended: the first to do so ends it. */
  private leaveWhenDone(): void {
    if (this.current !== 'TIME_WAIT' || this.isLeaving || this.isOver) return;
    if (!this.sink.isSettled || !this.source.isSettled || this.resizing.isDue) return;
    this.isLeaving = true;
    this.host.disconnect();
  }

  private onFinTimeout(): void {
    if (STATES[this.current].isOver) {
      this.host.disconnect();
      this.finish();
      return;
    }
    this.reset();
    this.finish();
  }

  private fail(failure: Failure): void {
    if (this.isOver) return;
    this.reset();
    this.finish(failure);
  }

  /** Sends AbortConn if possible now, and ends the connection of the CM. */
  private reset(): void {
    this.outbox.control({ mid: 'ABORT_CONN' });
    this.host.disconnect();
  }

  private finish(failure?: Failure): void {
    if (this.isOver) return;
    this.isOver = true;
    // A write's memory returns to the consumer now: the device must not read it any more.
    if (this.source.hasWritesPosted && !this.isLinkGone) this.host.cut();
    this.enter('CLOSED');
    this.sink.end();
    this.source.end(failure ?? { code: 'ECONNRESET', detail: 'the connection is closed' });
    this.host.onOver(failure);
  }
}
