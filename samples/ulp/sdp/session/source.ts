/**
 * The sending half of a connection: copies (Data), memory that the peer reads (SrcAvail), memory of
 * the peer to write to (SinkAvail), urgent bytes, and the end.
 */
import { type Advert, Flags, type Mode } from '../wire/index.js';
import type { Exposed, Failure, SessionConfig, SessionHost } from './host.js';
import { FIRST_MODE, HALF_OF, isModeChange, MODE_POLICY, MODE_RULES } from './modes.js';
import { type Outbox, roomFor } from './outbox.js';
import { expect } from './protocol-error.js';
import { type JobDone, type Place, WriteJob } from './write-job.js';

/** Bytes in the SrcAvail itself in combined mode: a page, as in OFED. */
const INLINE_BYTES = 4096;
/** Longest message, whatever the size of the peer's receives. */
export const MOST_MESSAGE_BYTES = 65536;
/** Smallest receive: it has room for a header. */
const LEAST_RECEIVE_BYTES = 36;
/** Payloads of a write from which it requests larger receives. */
const PAYLOADS_TO_ENLARGE = 8;

const STOPPED: Failure = { code: 'EPIPE', detail: 'closed here before all was sent' };

/** An outstanding SrcAvail. */
interface Offered {
  readonly exposed: Exposed;
  /** Place of the first byte to be read. */
  readonly place: Place;
  /** Bytes still to be read. */
  readonly left: number;
}

/** Bytes that the peer did not read and will not: copied once nothing is outstanding. */
interface Unread {
  readonly place: Place;
  readonly bytes: number;
}

/** State of a cancel: it is settled when each SrcAvail was answered. */
type Cancel = 'none' | 'wanted' | 'sent';

/** Services of the session for the source. */
export interface SourceLink {
  readonly host: SessionHost;
  readonly outbox: Outbox;
  readonly config: SessionConfig;
  /** True if `mseqAck` of the message being handled covers `mseq`. */
  covers(mseq: number): boolean;
  onDisConnSent(): void;
  onTaken(bytes: number): void;
}

export class Source {
  mode: Mode = FIRST_MODE;
  /** Size of the peer's receives. */
  private peerBytes: number;
  private job: WriteJob | undefined = undefined;
  private readonly offered: Offered[] = [];
  /** Memory of the peer that may be written to. */
  private readonly sinks: Advert[] = [];
  private readonly urgent: number[] = [];
  private cancel: Cancel = 'none';
  private cancelAt = 0;
  /** Time of the last progress on outstanding advertisements. */
  private progressAt = 0;
  private owesCancelAck = false;
  private unread: Unread | undefined = undefined;
  private pipeWanted = false;
  private refusals = 0;
  private copiesInRow = 0;
  /** Sequence number of the ModeChange that left PIPELINED. */
  private leftPipelined = -1;
  private shutdownDone: JobDone | undefined = undefined;
  private hasEnded = false;
  private enlarging: 'no' | 'asked' | 'done' = 'no';

  constructor(private readonly link: SourceLink) {
    this.peerBytes = link.config.peer.receiveBytes;
  }

  /** True if no request of the peer waits for an answer. */
  get isSettled(): boolean {
    return !this.owesCancelAck && this.sinks.length === 0;
  }

  get outstanding(): number {
    return this.offered.length;
  }

  /** True while this side's device reads memory of the consumer. */
  get hasWritesPosted(): boolean {
    return (this.job?.writes ?? 0) > 0;
  }

  /** True if DisConn was sent, or will be. */
  get isEnding(): boolean {
    return this.hasEnded || this.shutdownDone !== undefined;
  }

  get isEnded(): boolean {
    return this.hasEnded;
  }

  /** Time at which `tick` has work; Infinity for never. */
  get deadline(): number {
    const { advertMs, cancelMs } = this.link.config.times;
    if (this.cancel === 'sent') return this.cancelAt + cancelMs;
    return this.offered.length > 0 && this.cancel === 'none'
      ? this.progressAt + advertMs
      : Infinity;
  }

  /** @returns the reason that the session must end */
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

  /** Drops everything that was not sent. */
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

  /** Performs one pending action, if possible now. */
  step(): boolean {
    if (this.owesCancelAck) return this.sendCancelAck();
    if (this.hasEnded) return false;
    if (this.cancel === 'wanted') return this.sendCancel();
    if (this.cancel === 'sent') return false;
    if (this.unread !== undefined) return false;
    const mode = this.offered.length === 0 ? this.wantedMode() : this.mode;
    if (mode !== this.mode) return this.changeMode(mode);
    if (this.job !== undefined) return this.stepJob(this.job);
    if (this.offered.length > 0) return false;
    if (this.urgent.length > 0) return this.stepUrgent();
    return this.shutdownDone !== undefined && this.sendDisConn(this.shutdownDone);
  }

  /** Handles RdmaRdCompl: the oldest SrcAvail was read, or a part of a cancelled one. */
  onRead(bytes: number): void {
    const [head] = this.offered;
    expect(head !== undefined, () => 'RdmaRdCompl, and no SrcAvail is outstanding');
    const least = this.cancel === 'sent' ? 1 : head.left;
    expect(
      bytes >= least && bytes <= head.left && this.unread === undefined,
      () => `RdmaRdCompl of ${bytes} bytes: ${head.left} are offered`,
    );
    const { index, offset } = head.place;
    const left = head.left - bytes;
    if (left > 0) this.unread = { place: { index, offset: offset + bytes }, bytes: left };
    else this.refusals = 0;
    this.link.onTaken(bytes);
    this.onAnswered(head);
  }

  /** Handles SendSm: the oldest SrcAvail and those after it must be copied. */
  onRefused(): void {
    const [head] = this.offered;
    expect(head !== undefined, () => 'SendSm, and no SrcAvail is outstanding');
    const { place, bytes } = this.unread ?? { place: head.place, bytes: 0 };
    this.unread = { place, bytes: bytes + head.left };
    if (this.cancel !== 'sent') this.refusals++;
    this.onAnswered(head);
  }

  onSinkAvail(advert: Advert): void {
    const rules = MODE_RULES[this.mode];
    const { leftPipelined } = this;
    const crosses = !rules.sinkAvails && leftPipelined >= 0 && !this.link.covers(leftPipelined);
    expect(rules.sinkAvails || crosses, () => `SinkAvail in ${this.mode} mode`);
    const { maxAdverts } = this.link.config;
    expect(this.sinks.length < maxAdverts, () => `more than ${maxAdverts} SinkAvail outstanding`);
    this.sinks.push(advert);
  }

  /** Handles SinkAvailCancel. */
  onSinkCancel(): void {
    expect(!this.owesCancelAck, () => 'SinkAvailCancel, and one has not been answered');
    // If none is left, the cancel has crossed the RdmaWrCompl of the last one.
    this.owesCancelAck = this.sinks.length > 0;
    this.sinks.length = 0;
  }

  /** Handles a change of mode by the peer, which receives the data. */
  onModeChange(mode: Mode): void {
    const from = this.mode;
    expect(
      isModeChange('sink', from, mode),
      () => `ModeChange of the sink from ${from} to ${mode}`,
    );
    this.mode = mode;
    this.refusals = 0;
  }

  /** Handles REQ_PIPE. */
  onPipeWanted(): void {
    this.pipeWanted = true;
  }

  onWriteDone(bytes: number): void {
    if (this.job !== undefined) this.job.writes--;
    this.link.onTaken(bytes);
  }

  /** Handles ChRcvBufAck. */
  onEnlarged(bytes: number): void {
    expect(this.enlarging === 'asked', () => 'ChRcvBufAck, and nothing was asked for');
    expect(
      bytes >= LEAST_RECEIVE_BYTES,
      () => `ChRcvBufAck of ${bytes} bytes: at least ${LEAST_RECEIVE_BYTES}`,
    );
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
      const sink = MODE_RULES[this.mode].sinkAvails ? this.sinks[0] : undefined;
      if (sink !== undefined && this.offered.length === 0) return this.writeInto(job, sink);
      // A peer that has offered memory will do so again: wait for requests in flight first.
      if (sink === undefined && job.writes === 0 && this.mayOffer) return this.offer(job);
    }
    return this.offered.length === 0 && this.copy(job);
  }

  /** True if this many contiguous bytes are not copied. */
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
    return true;
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
    if (this.mode === 'PIPELINED') this.leftPipelined = mseq;
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

  private onAnswered({ exposed }: Offered): void {
    exposed.release();
    this.offered.shift();
    this.progressAt = this.link.host.now();
    if (this.offered.length > 0) return;
    this.cancel = 'none';
    const { unread, job } = this;
    this.unread = undefined;
    if (unread !== undefined && job?.isStopped === false) job.rewind(unread.place, unread.bytes);
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
