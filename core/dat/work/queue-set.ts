/**
 * The queues of one queue pair: core's side of its rings, their doorbells, and the context number
 * of its completions.
 */
import { toDatError } from '../../errors/index.js';
import type {
  CompletionOwner,
  CompletionOwners,
  CompletionView,
  DatEvent,
  Evd,
} from '../../evd/index.js';
import { type Facts, Symbolic } from '../../spi/checks/index.js';
import { QpState, type QueuePair, Ring, rqeBytes, SGE, SQE, WrFlags } from '../../spi/index.js';
import { CompletionFlags } from '../common/constants.js';
import type { Segments } from '../memory/segment.js';
import type { QueueAttributes } from './attributes.js';
import { EntryRing, RECEIVE_ENTRY, SEND_ENTRY, EntryFlag } from './entry-ring.js';
import { slotFlagsOf, wrFlagsOf } from './request-specs.js';
import type { UdEp } from '../datagram/endpoint.js';
import type { Ep } from '../endpoint/ep.js';

// Core's side of a send or receive queue. Entries are freed in order: a completion frees all
// entries up to its own (docs/spi.md). Allocates nothing after construction.

/** Its indices are free-running. */
export class WorkQueue extends EntryRing {
  /** Index of the oldest entry not known to be finished. */
  reclaimed = 0;
  /** Producer index at the last doorbell. */
  private published = 0;

  get outstanding(): number {
    return (this.producer - this.reclaimed) >>> 0;
  }

  protected isHeld(place: number): boolean {
    return ((place - this.reclaimed) & this.ring.mask) < this.outstanding;
  }

  /** Committed entries since the last doorbell. */
  get unpublished(): number {
    return (this.producer - this.published) >>> 0;
  }

  /** Commits the next entry, which is written, with its number of segments. */
  commit(flags: number): void {
    const { words } = this.ring;
    const { flagsWord, flagsBit } = this.entry;
    words[this.nextWord + flagsWord]! |= flags << flagsBit;
    this.producer = (this.producer + 1) >>> 0;
  }

  /** Shows committed entries to the provider. Returns false when there are no new ones. */
  publish(): boolean {
    if (this.published === this.producer) return false;
    this.published = this.producer;
    this.ring.producer = this.producer;
    return true;
  }

  /** True if a completion may name this entry now. */
  isOutstanding(index: number): boolean {
    return (index - this.reclaimed) >>> 0 < this.outstanding;
  }

  /** True if the newest outstanding entry will end without a completion of its own. */
  get endsUnsignalled(): boolean {
    if (this.outstanding === 0) return false;
    return (this.flagsOf((this.producer - 1) >>> 0) & EntryFlag.SIGNALLED) === 0;
  }

  /** True if an outstanding entry will still complete. All others end without a completion. */
  get awaitsCompletion(): boolean {
    for (let i = this.reclaimed; i !== this.producer; i = (i + 1) >>> 0) {
      if ((this.flagsOf(i) & EntryFlag.SIGNALLED) !== 0) return true;
    }
    return false;
  }

  /** Frees the entries up to and including this one. */
  reclaimThrough(index: number): void {
    const end = (index + 1) >>> 0;
    while (this.reclaimed !== end) {
      this.unpin(this.reclaimed);
      this.reclaimed = (this.reclaimed + 1) >>> 0;
    }
  }

  /**
   * Moves outstanding entries into another queue of the same kind, in order. There must be room.
   */
  moveTo(other: WorkQueue): void {
    const { words } = this.ring;
    for (let i = this.reclaimed; i !== this.producer; i = (i + 1) >>> 0) {
      const segments = this.segmentsOf(i);
      const from = this.ring.wordOf(i);
      other.ring.words.set(
        words.subarray(from, from + this.entry.segments + segments * SGE.WORDS),
        other.nextWord,
      );
      for (let s = 0; s < segments; s++) other.pin(s, this.regionOf(i, s)!);
      other.commit(this.flagsOf(i));
    }
    this.discard();
  }

  /** Most segments of one entry that is outstanding. */
  get widest(): number {
    let widest = 0;
    for (let i = this.reclaimed; i !== this.producer; i = (i + 1) >>> 0) {
      widest = Math.max(widest, this.segmentsOf(i));
    }
    return widest;
  }

  /** Frees everything: the queue pair is destroyed, and perhaps the ring with it. */
  override discard(): void {
    this.reclaimed = this.producer;
    super.discard();
  }
}

const { SUPPRESS } = CompletionFlags;
const U32 = 2 ** 32;
/** Requests of a burst for each doorbell: the device begins with them. */
const RING_EVERY = 32;
/** Stands in for a missing receive ring: nothing is ever posted to it. */
const NO_RECEIVES = Ring.allocate(1, rqeBytes(1));

/** A doorbell throws when the device is gone for good. */
const DOORBELL = { operation: 'ep.post' };

/** Result of a reclaim for an entry that is not outstanding. */
export const UNKNOWN_SLOT = -1;

export abstract class QueueSet<E extends Ep | UdEp> implements CompletionOwner {
  readonly qp: QueuePair;
  readonly sends: WorkQueue;
  /** Always empty with a shared receive queue, or if nothing is received. */
  readonly receives: WorkQueue;
  protected readonly context: number;
  private readonly signalEvery: number;
  private unsignalledRun = 0;
  private burstDepth = 0;
  private ended = false;

  /**
   * @param ep named by its completions
   * @param sendIov segments of one request
   * @param sendDoorbellOpen while false, requests wait in the ring
   * @param create creates the queue pair, whose completions carry that context
   * @throws SpiError, or DatError when there are no completion contexts left
   */
  constructor(
    protected readonly ep: E,
    owners: CompletionOwners,
    { maxRequestDtos, maxRecvDtos, maxRecvIov }: QueueAttributes,
    sendIov: number,
    public sendDoorbellOpen: boolean,
    create: (context: number) => QueuePair,
  ) {
    this.context = owners.allocate(this);
    try {
      this.qp = create(this.context);
    } catch (error) {
      owners.free(this.context);
      throw error;
    }
    const { sendRing, receiveRing } = this.qp;
    this.sends = new WorkQueue(sendRing, maxRequestDtos, sendIov, SEND_ENTRY);
    this.receives =
      receiveRing === undefined
        ? new WorkQueue(NO_RECEIVES, 0, 1, RECEIVE_ENTRY)
        : new WorkQueue(receiveRing, maxRecvDtos, maxRecvIov, RECEIVE_ENTRY);
    this.signalEvery = Math.max(1, maxRequestDtos >>> 1);
  }

  /** Fields that an endpoint shows of its queues: how full they are. */
  facts(): Facts {
    const { sends, receives } = this;
    const fill = ({ outstanding, limit }: WorkQueue): Symbolic =>
      new Symbolic(`${outstanding}/${limit}`);
    return { requests: fill(sends), receives: fill(receives) };
  }

  abstract onCompletion(words: Uint32Array, at: number): CompletionView;
  abstract toEvent(words: Uint32Array, at: number): DatEvent;

  /**
   * Commits the next request, whose own words are written, and rings the doorbell if it is due.
   * @param flags CompletionFlags
   * @param word immediate data, or the context to invalidate
   */
  protected commitSend(
    opcode: number,
    slotFlags: number,
    segments: Segments,
    cookie: number,
    flags: number,
    word: number,
  ): void {
    const { sends } = this;
    const { words } = sends.ring;
    const signal = (flags & SUPPRESS) === 0 || ++this.unsignalledRun >= this.signalEvery;
    if (signal) this.unsignalledRun = 0;
    const signalled = signal ? WrFlags.SIGNALED : 0;
    const count = sends.putSegments(segments);
    const at = sends.nextWord;
    words[at + SQE.CONTROL] = opcode | ((wrFlagsOf(flags) | signalled) << 8) | (count << 16);
    words[at + SQE.INLINE_LENGTH] = 0;
    words[at + SQE.COOKIE_LO] = cookie >>> 0;
    words[at + SQE.COOKIE_HI] = Math.floor(cookie / U32);
    words[at + SQE.IMMEDIATE_OR_INVALIDATE] = word;
    sends.commit(slotFlags | slotFlagsOf(flags) | (signal ? EntryFlag.SIGNALLED : 0));
    this.kickSends();
  }

  /**
   * Writes a receive. The caller has checked everything, including that there is room.
   * @param flags CompletionFlags
   */
  postReceive(segments: Segments, cookie: number, flags: number): void {
    const { receives } = this;
    receives.putReceive(segments, cookie);
    receives.commit(slotFlagsOf(flags) | EntryFlag.SIGNALLED);
    if (this.burstDepth === 0) this.ringReceives();
  }

  /** Holds doorbells back until the outermost burst ends, or many requests wait. */
  beginBurst(): void {
    this.burstDepth++;
  }

  endBurst(): void {
    if (--this.burstDepth > 0 || this.ended) return;
    this.ringReceives();
    this.ringSends();
  }

  /** Rings the doorbell, except in a burst with few requests written so far. */
  kickSends(): void {
    if (this.burstDepth === 0 || this.sends.unpublished >= RING_EVERY) this.ringSends();
  }

  /** Opens the doorbell: requests that waited are sent. */
  openSendDoorbell(): void {
    if (this.sendDoorbellOpen) return;
    this.sendDoorbellOpen = true;
    this.ringSends();
  }

  protected ringSends(): void {
    if (!this.sendDoorbellOpen || !this.sends.publish()) return;
    try {
      this.qp.ringSendDoorbell();
    } catch (error) {
      throw toDatError(error, DOORBELL);
    }
  }

  protected ringReceives(): void {
    if (!this.receives.publish()) return;
    try {
      this.qp.ringReceiveDoorbell();
    } catch (error) {
      throw toDatError(error, DOORBELL);
    }
  }

  /** Frees the entry and returns its flags. A provider must only complete outstanding entries. */
  protected reclaim(index: number, isReceive: boolean): number {
    const queue = isReceive ? this.receives : this.sends;
    if (!queue.isOutstanding(index)) return UNKNOWN_SLOT;
    const flags = queue.flagsOf(index);
    queue.reclaimThrough(index);
    return flags;
  }

  /**
   * Moves the queue pair to ERR: outstanding requests are flushed, also those held back.
   * @returns the reason if the device fails to do it: then nothing is flushed
   */
  toError(): string | undefined {
    try {
      if (this.qp.state !== QpState.ERR) this.qp.modify({ state: QpState.ERR });
      this.openSendDoorbell();
      return undefined;
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  }

  /** Destroys the queue pair, and drops its completions that are not dequeued from `evds`. */
  destroy(evds: readonly Evd[]): void {
    this.qp.destroy();
    for (const evd of evds) evd.feed.purge(this.context);
    this.ep.core.owners.free(this.context);
    this.discard();
  }

  protected discard(): void {
    this.ended = true;
    this.sends.discard();
    this.receives.discard();
  }
}
