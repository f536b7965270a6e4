/**
 * The half of a connection that this side sends on: copies (Data), memory that the peer reads
 * (SrcAvail), memory of the peer's that is written (SinkAvail), urgent bytes, and the end (DisConn).
 * While a SrcAvail is outstanding no Data is sent: so the order of the bytes is that of the messages.
 */
import { type Advert, Flags, type Mode } from '../wire/index.js';
import type { Exposed, Failure, SessionConfig, SessionHost } from './host.js';
import { FIRST_MODE, HALF_OF, isModeChange, MODE_POLICY, MODE_RULES } from './modes.js';
import { type Outbox, roomFor } from './outbox.js';
import { expect } from './protocol-error.js';
import { type JobDone, type Place, WriteJob } from './write-job.js';

/** Bytes that a SrcAvail carries itself in combined mode: a page, as OFED did. */
const INLINE_BYTES = 4096;
/** Bytes of a message at most, whatever the peer's receives have room for. */
export const MOST_MESSAGE_BYTES = 65536;
/** A receive has room for a header, at least. */
const LEAST_RECEIVE_BYTES = 36;
/** Payloads of a write, from which on larger receives are worth asking for. */
const PAYLOADS_TO_ENLARGE = 8;

const STOPPED: Failure = { code: 'EPIPE', detail: 'closed here before all was sent' };

/** A SrcAvail that is outstanding. */
interface Offered {
  readonly exposed: Exposed;
  /** Of the first byte that has not been read. */
  place: Place;
  /** Bytes that have not been read. */
  left: number;
}

/** A cancel of what is outstanding: it settles by completions, by SendSm, or by a SinkAvail. */
type Cancel = 'none' | 'wanted' | 'sent';

/** What the source needs of its session. */
export interface SourceLink {
  readonly host: SessionHost;
  readonly outbox: Outbox;
  readonly config: SessionConfig;
  /** `mseqAck` of the message that is being looked at covers `mseq`. */
  covers(mseq: number): boolean;
  onDisConnSent(): void;
  onTaken(bytes: number): void;
}

export class Source {
  mode: Mode = FIRST_MODE;
  /** Bytes of a receive of the peer's. */
  private peerBytes: number;
  private job: WriteJob | undefined = undefined;
  private readonly offered: Offered[] = [];
  /** Memory of the peer's that may be written to. */
  private readonly sinks: Advert[] = [];
  private readonly urgent: number[] = [];
  private cancel: Cancel = 'none';
  private cancelAt = 0;
  /** When something was last heard of what is outstanding. */
  private progressAt = 0;
  private owesCancelAck = false;
  /** Cancels that were settled by something else than SendSm: one may come yet. */
  private lateAnswers = 0;
  private pipeWanted = false;
  private refusals = 0;
  private copiesInRow = 0;
  /** Messages with data that voided no SinkAvail, modulo 2^32. */
  private nonDiscard = 0;
  /** Sequence number of the ModeChange that left PIPELINED. */
  private leftPipelined = -1;
  private shutdownDone: JobDone | undefined = undefined;
  private hasEnded = false;
  private enlarging: 'no' | 'asked' | 'done' = 'no';

  constructor(private readonly link: SourceLink) {
    this.peerBytes = link.config.peer.receiveBytes;
  }

  /** Nothing is outstanding with the peer. */
  get isSettled(): boolean {
    return this.offered.length === 0 && this.cancel === 'none';
  }

  get outstanding(): number {
    return this.offered.length;
  }

  /** Memory of the consumer is being read by this side's device. */
  get hasWritesPosted(): boolean {
    return (this.job?.writes ?? 0) > 0;
  }

  /** DisConn has been sent, or will be. */
  get isEnding(): boolean {
    return this.hasEnded || this.shutdownDone !== undefined;
  }

  get isEnded(): boolean {
    return this.hasEnded;
  }

  /** When `tick` has something to do; Infinity for never. */
  get deadline(): number {
    const { advertMs, cancelMs } = this.link.config.times;
    if (this.cancel === 'sent') return this.cancelAt + cancelMs;
    return this.offered.length > 0 && this.cancel === 'none' ? this.progressAt + advertMs : Infinity;
  }

  /** @returns why the session must end */
  tick(now: number): Failure | undefined {
    if (now < this.deadline) return undefined;
    const { cancelMs } = this.link.config.times;
    if (this.cancel === 'sent') {
      return { code: 'ETIMEDOUT', detail: `SrcAvailCancel was not answered in ${cancelMs} ms` };
    }
    this.cancel = 'wanted';
    return undefined;
  }

  write(chunks: readonly Uint8Array[], done: JobDone): void {
    this.job = new WriteJob(chunks, done);
  }

  sendUrgent(byte: number): void {
    this.urgent.push(byte);
    this.link.outbox.raise(Flags.OOB_PEND, true);
    this.cancelOffered();
  }

  shutdown(done: JobDone): void {
    if (!this.hasEnded) this.shutdownDone ??= done;
  }

  /** What has not been sent is not sent. */
  stop(): void {
    this.job?.stop();
    this.urgent.length = 0;
    this.link.outbox.raise(Flags.OOB_PEND, false);
    this.cancelOffered();
  }

  /** The session is over. */
  end(failure: Failure): void {
    for (const { exposed } of this.offered.splice(0)) exposed.release();
    this.sinks.length = 0;
    const { job, shutdownDone } = this;
    this.job = undefined;
    this.shutdownDone = undefined;
    job?.done(failure);
    shutdownDone?.(failure);
  }

  /** Does one thing of what is to be done, if it can be done now. */
  step(): boolean {
    if (this.owesCancelAck) return this.sendCancelAck();
    if (this.hasEnded) return false;
    if (this.cancel === 'wanted') return this.sendCancel();
    if (this.cancel === 'sent') return false;
    const mode = this.offered.length === 0 ? this.wantedMode() : this.mode;
    if (mode !== this.mode) return this.changeMode(mode);
    if (this.job !== undefined) return this.stepJob(this.job);
    if (this.offered.length > 0) return false;
    if (this.urgent.length > 0) return this.stepUrgent();
    return this.shutdownDone !== undefined && this.sendDisConn(this.shutdownDone);
  }

  /** RdmaRdCompl. */
  onRead(bytes: number): void {
    expect(bytes > 0, () => 'RdmaRdCompl of 0 bytes');
    const [head] = this.offered;
    expect(head !== undefined, () => 'RdmaRdCompl, and no SrcAvail is outstanding');
    expect(bytes <= head.left, () => `RdmaRdCompl of ${bytes} bytes: ${head.left} are offered`);
    this.progressAt = this.link.host.now();
    this.link.onTaken(bytes);
    head.left -= bytes;
    head.place = { index: head.place.index, offset: head.place.offset + bytes };
    if (head.left > 0) return;
    head.exposed.release();
    this.offered.shift();
    this.refusals = 0;
    if (this.offered.length === 0) this.settleCancel();
  }

  /** SendSm: all that is outstanding is to be copied. */
  onRefused(): void {
    if (this.offered.length === 0) {
      expect(this.lateAnswers > 0, () => 'SendSm, and no SrcAvail is outstanding');
      this.lateAnswers--;
      return;
    }
    if (this.cancel === 'none') this.refusals++;
    this.cancel = 'none';
    this.takeBack('all');
  }

  /** @param nonDiscard messages with data that the peer has counted */
  onSinkAvail(advert: Advert, nonDiscard: number): void {
    const rules = MODE_RULES[this.mode];
    const crosses = !rules.sinkAvails && this.leftPipelined >= 0 && !this.link.covers(this.leftPipelined);
    expect(rules.sinkAvails || crosses, () => `SinkAvail in ${this.mode} mode`);
    if (this.hasEnded) return;
    if (nonDiscard !== this.nonDiscard) {
      // Data that is on its way to the peer voids it there, too.
      this.nonDiscard = (this.nonDiscard - 1) >>> 0;
      return;
    }
    if (crosses) return;
    const { maxAdverts } = this.link.config;
    expect(this.sinks.length < maxAdverts, () => `more than ${maxAdverts} SinkAvail outstanding`);
    this.sinks.push(advert);
    // What is outstanding has crossed it: the peer reads nothing of that.
    if (this.offered.length > 0) {
      this.takeBack('none');
      this.settleCancel();
    }
    if (this.cancel === 'wanted') this.cancel = 'none';
  }

  /** SinkAvailCancel. */
  onSinkCancel(): void {
    expect(!this.owesCancelAck, () => 'SinkAvailCancel, and one has not been answered');
    this.sinks.length = 0;
    this.owesCancelAck = true;
  }

  /** The peer, which takes the data, changes the mode. */
  onModeChange(mode: Mode): void {
    const from = this.mode;
    expect(isModeChange('sink', from, mode), () => `ModeChange of the sink from ${from} to ${mode}`);
    this.mode = mode;
    this.refusals = 0;
  }

  /** REQ_PIPE. */
  onPipeWanted(): void {
    this.pipeWanted = true;
  }

  onWriteDone(bytes: number): void {
    if (this.job !== undefined) this.job.writes--;
    this.link.onTaken(bytes);
  }

  /** ChRcvBufAck. */
  onEnlarged(bytes: number): void {
    expect(this.enlarging === 'asked', () => 'ChRcvBufAck, and nothing was asked for');
    expect(bytes >= LEAST_RECEIVE_BYTES, () => `ChRcvBufAck of ${bytes} bytes: at least ${LEAST_RECEIVE_BYTES}`);
    this.enlarging = 'done';
    this.peerBytes = bytes;
  }

  private stepJob(job: WriteJob): boolean {
    if (!job.isAtEnd) return this.stepBytes(job);
    if (this.offered.length > 0 || job.writes > 0) return false;
    this.job = undefined;
    job.done(job.isStopped ? STOPPED : undefined);
    return true;
  }

  private stepBytes(job: WriteJob): boolean {
    if (this.wantsLarger(job)) return this.enlarge();
    const { together } = job;
    if (this.isBig(together)) {
      const [sink] = this.sinks;
      if (sink !== undefined && this.offered.length === 0) return this.writeInto(job, sink);
      // A peer that has offered memory does so again: what is under way is waited for first.
      if (this.sinks.length === 0 && job.writes === 0 && this.mayOffer) return this.offer(job);
    }
    return this.offered.length === 0 && this.copy(job);
  }

  /** So many bytes that lie together are not copied. */
  private isBig(bytes: number): boolean {
    const { thresholdBytes, most } = this.link.config.zeroCopy;
    if (most === 'BUFFERED' || this.urgent.length > 0) return false;
    return bytes >= thresholdBytes && bytes > 1 && this.mode !== 'BUFFERED';
  }

  private get mayOffer(): boolean {
    const { srcAvails } = MODE_RULES[this.mode];
    if (srcAvails === 'one') return this.offered.length === 0;
    return srcAvails === 'many' && this.offered.length < this.link.config.peer.maxAdverts;
  }

  private offer(job: WriteJob): boolean {
    const { outbox, host, config } = this.link;
    const carries = MODE_RULES[this.mode].srcAvails === 'one';
    if (!outbox.may(carries ? 'data' : 'control')) return false;
    const lengthBytes = Math.min(job.together, config.zeroCopy.advertBytes);
    const memory = job.view(lengthBytes);
    const exposed = host.exposeSource(memory);
    if (exposed === undefined) {
      job.copyNext(job.together);
      return this.offered.length === 0 && this.copy(job);
    }
    const room = roomFor('SRC_AVAIL', this.messageBytes);
    const inline = carries ? Math.min(INLINE_BYTES, lengthBytes - 1, room) : 0;
    const payload = inline > 0 ? [memory.subarray(0, inline)] : [];
    const { rkey, address } = exposed;
    const body = { mid: 'SRC_AVAIL', lengthBytes, rkey, address } as const;
    outbox.send(body, payload, inline);
    if (inline > 0) this.countData();
    job.advance(inline);
    if (this.offered.length === 0) this.progressAt = host.now();
    this.offered.push({ exposed, place: job.place, left: lengthBytes - inline });
    job.advance(lengthBytes - inline);
    this.copiesInRow = 0;
    if (inline > 0) this.link.onTaken(inline);
    return true;
  }

  private writeInto(job: WriteJob, sink: Advert): boolean {
    const { outbox, host } = this.link;
    if (!outbox.may('control', 2)) return false;
    const bytes = Math.min(job.together, sink.lengthBytes);
    if (!host.rdmaWrite(job.view(bytes), sink)) {
      job.copyNext(job.together);
      return this.copy(job);
    }
    this.sinks.shift();
    job.writes++;
    outbox.send({ mid: 'RDMA_WR_COMPL', bytes }, [], 0);
    job.advance(bytes);
    this.copiesInRow = 0;
    return true;
  }

  private copy(job: WriteJob): boolean {
    const { outbox } = this.link;
    if (!outbox.may('data')) return false;
    const room = roomFor('DATA', this.messageBytes);
    const { pieces, bytes } = job.gather(room, (length) => this.isBig(length));
    outbox.send({ mid: 'DATA' }, pieces, bytes);
    this.countData();
    job.advance(bytes);
    this.copiesInRow++;
    this.link.onTaken(bytes);
    return true;
  }

  private stepUrgent(): boolean {
    const { outbox } = this.link;
    if (!outbox.may('data')) return false;
    const byte = this.urgent.shift() as number;
    const flags = Flags.OOB_PRES | Flags.OOB_PEND;
    outbox.raise(Flags.OOB_PEND, this.urgent.length > 0);
    outbox.send({ mid: 'DATA' }, [Uint8Array.of(byte)], 1, flags, true);
    this.countData();
    return true;
  }

  /** A message with data voids the oldest SinkAvail, where there is one: here and at the peer. */
  private countData(): void {
    if (this.sinks.shift() === undefined) this.nonDiscard = (this.nonDiscard + 1) >>> 0;
  }

  private get messageBytes(): number {
    return Math.min(this.peerBytes, MOST_MESSAGE_BYTES);
  }

  private wantedMode(): Mode {
    const { mode } = this;
    const { most } = this.link.config.zeroCopy;
    if (mode === 'COMBINED' && this.refusals >= MODE_POLICY.refusalsToBuffered) return 'BUFFERED';
    if (mode === 'COMBINED' && this.pipeWanted && most === 'PIPELINED') return 'PIPELINED';
    if (mode === 'PIPELINED' && this.copiesInRow >= MODE_POLICY.copiesToCombined) return 'COMBINED';
    return mode;
  }

  private changeMode(mode: Mode): boolean {
    const { outbox } = this.link;
    if (!outbox.may('control')) return false;
    const mseq = outbox.send({ mid: 'MODE_CHANGE', mode, half: HALF_OF.source }, [], 0);
    if (this.mode === 'PIPELINED') {
      this.leftPipelined = mseq;
      // The peer takes them back when it reads of the change.
      this.sinks.length = 0;
    }
    this.mode = mode;
    this.pipeWanted = false;
    this.refusals = 0;
    this.copiesInRow = 0;
    return true;
  }

  private cancelOffered(): void {
    if (this.offered.length > 0 && this.cancel === 'none') this.cancel = 'wanted';
  }

  private sendCancel(): boolean {
    if (this.offered.length === 0) {
      this.cancel = 'none';
      return true;
    }
    if (!this.link.outbox.control({ mid: 'SRC_AVAIL_CANCEL' })) return false;
    this.cancel = 'sent';
    this.cancelAt = this.link.host.now();
    return true;
  }

  private settleCancel(): void {
    if (this.cancel === 'sent') this.lateAnswers++;
    this.cancel = 'none';
  }

  /** Nothing is outstanding any more: what has not been read is sent again, as copies or as it may. */
  private takeBack(copied: 'all' | 'none'): void {
    const [head] = this.offered;
    if (head === undefined) return;
    let bytes = 0;
    for (const { exposed, left } of this.offered.splice(0)) {
      exposed.release();
      bytes += left;
    }
    const { job } = this;
    if (job === undefined || job.isStopped) return;
    job.rewind(head.place, copied === 'all' ? bytes : 0);
  }

  private sendCancelAck(): boolean {
    if (!this.link.outbox.control({ mid: 'SINK_CANCEL_ACK' })) return false;
    this.owesCancelAck = false;
    return true;
  }

  private sendDisConn(done: JobDone): boolean {
    if (!this.link.outbox.control({ mid: 'DIS_CONN' })) return false;
    this.hasEnded = true;
    this.shutdownDone = undefined;
    this.sinks.length = 0;
    this.link.onDisConnSent();
    done();
    return true;
  }

  private wantsLarger(job: WriteJob): boolean {
    const { wantedPeerBytes } = this.link.config;
    if (this.enlarging !== 'no' || wantedPeerBytes <= this.peerBytes) return false;
    return job.totalBytes >= PAYLOADS_TO_ENLARGE * this.peerBytes && !this.isBig(job.together);
  }

  private enlarge(): boolean {
    const bytes = this.link.config.wantedPeerBytes;
    if (!this.link.outbox.control({ mid: 'CH_RCV_BUF', bytes })) return false;
    this.enlarging = 'asked';
    return true;
  }
}
