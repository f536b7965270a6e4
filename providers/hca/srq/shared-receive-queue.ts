/**
 * Shared receive queue (IBTA 10.2.9): slots in the order of their submission, given to whichever
 * queue pair needs one next. A slot is ours from the doorbell until its completion, or until the
 * queue pair that took it hands it back.
 */
import { assert, checkInteger } from '../../../core/spi/checks/index.js';
import { einval } from '../../../core/spi/errors/einval.js';
import {
  AsyncEventType,
  Ring,
  ringEntries,
  RQE,
  rqeBytes,
  type SharedReceiveQueue,
  type SharedReceiveQueueInit,
  type SharedReceiveRing,
  SpiError,
  type Random,
  SLOT_SHIFT,
} from '../../../core/spi/index.js';
import type { CompletionSource, SoftCompletionQueue } from '../completions/completion-queue.js';
import type { Hca } from '../hca.js';
import type { Domain } from '../memory/domain.js';
import type { Notifiable } from '../completions/notification-queue.js';
import type { ReceiveSource } from './receive-source.js';
import type { SoftXrcDomain } from './xrc-domain.js';
import { FreshNumbers } from '../common/fresh-numbers.js';
import { KeyTable } from '../memory/key-table.js';

const SUBMISSION_BYTES = 4;

export class SoftSharedReceiveQueue
  implements SharedReceiveQueue, ReceiveSource, Notifiable, CompletionSource
{
  ring: SharedReceiveRing;
  words: Uint32Array;
  readonly maxSge: number;
  readonly domain: Domain;
  readonly ownRing = undefined;
  readonly posted = -1;
  /** XRC: its receives complete here, whatever takes them. */
  readonly completionQueue: SoftCompletionQueue | undefined;
  readonly xrcDomain: SoftXrcDomain | undefined;
  /** A completion of it was lost: nothing more is taken from it. */
  failed = false;
  /** Queue pairs that receive from it. */
  users = 0;
  destroyed = false;
  /** Slots that wait to be taken, a circular array: from `head` to `tail`. */
  private waiting: Uint32Array;
  private head = 0;
  private tail = 0;
  /** By slot: 1 while it is ours. */
  private held: Uint8Array;
  private heldCount = 0;
  private limit = 0;
  private maxWr: number;

  constructor(
    private readonly host: Hca,
    readonly srqn: number,
    private readonly init: SharedReceiveQueueInit,
    /** Most entries that any size may have. */
    private readonly mostWr: number,
  ) {
    this.maxWr = checkedWr(init.maxWr, mostWr);
    const entries = ringEntries(init.maxWr);
    this.maxSge = init.maxSge;
    this.domain = init.pd as Domain;
    this.completionQueue = init.xrc?.cq as SoftCompletionQueue | undefined;
    this.xrcDomain = init.xrc?.domain as SoftXrcDomain | undefined;
    this.ring = {
      slots: Ring.allocate(entries, rqeBytes(init.maxSge)),
      submissions: Ring.allocate(entries, SUBMISSION_BYTES),
    };
    this.words = this.ring.slots.words;
    this.waiting = new Uint32Array(entries);
    this.held = new Uint8Array(entries);
  }

  /** Entries that wait to be taken. */
  get available(): number {
    return (this.tail - this.head) >>> 0;
  }

  // --- verbs ------------------------------------------------------------------------------------

  ringDoorbell(): void {
    this.checkThere();
    const { submissions } = this.ring;
    const end = submissions.producer;
    let index = submissions.consumer;
    try {
      for (; index !== end; index = (index + 1) >>> 0) {
        this.submit(submissions.words[submissions.wordOf(index)]!);
      }
    } finally {
      submissions.consumer = index;
    }
  }

  setLimit(limit: number): void {
    this.checkThere();
    checkInteger('limit', limit, 0, this.maxWr, einval);
    this.limit = limit;
    this.watchLimit();
  }

  resize(maxWr: number): void {
    this.checkThere();
    checkedWr(maxWr, this.mostWr);
    if (maxWr < this.heldCount) {
      throw new SpiError('EINVAL', `maxWr ${maxWr}: ${this.heldCount} entries are outstanding`);
    }
    if (ringEntries(maxWr) > this.ring.slots.entries) this.grow(ringEntries(maxWr));
    this.maxWr = maxWr;
  }

  destroy(): void {
    if (this.destroyed) return;
    if (this.users > 0) throw new SpiError('EBUSY', `${this.users} queue pairs receive from it`);
    this.destroyed = true;
    this.host.onSharedReceiveQueueDestroyed(this);
  }

  // --- receive source ---------------------------------------------------------------------------

  take(): number {
    if (this.head === this.tail) return -1;
    const slot = this.waiting[this.head & this.ring.slots.mask]!;
    this.head = (this.head + 1) >>> 0;
    this.watchLimit();
    return slot;
  }

  wordOf(slot: number): number {
    return this.ring.slots.wordOf(slot);
  }

  release(slot: number): void {
    assert(this.held[slot] === 1, 'a slot completes once', slot);
    this.held[slot] = 0;
    this.heldCount -= 1;
  }

  putBack(slot: number): void {
    this.head = (this.head - 1) >>> 0;
    this.waiting[this.head & this.ring.slots.mask] = slot;
  }

  takeForFlush(): number {
    return -1;
  }

  discard(): void {
    // Receives that one queue pair discards are there for the others.
  }

  onCqOverrun(): void {
    if (this.failed) return;
    this.failed = true;
    this.host.notify(this, AsyncEventType.SRQ_ERR);
  }

  deliver(argument: number): void {
    if (!this.destroyed) this.init.onEvent(argument as AsyncEventType);
  }

  // ----------------------------------------------------------------------------------------------

  /** @throws SpiError: the slot is not ours */
  private submit(slot: number): void {
    const { slots } = this.ring;
    if (slot >= slots.entries) {
      throw new SpiError('EINVAL', `slot ${slot}: 0 to ${slots.entries - 1}`);
    }
    if (this.held[slot] === 1) {
      throw new SpiError('EINVAL', `slot ${slot} has been submitted and has not completed`);
    }
    const segments = slots.words[slots.wordOf(slot) + RQE.NUM_SGE]!;
    if (segments > this.maxSge) {
      throw new SpiError('EINVAL', `slot ${slot} has ${segments} segments: 0 to ${this.maxSge}`);
    }
    if (this.heldCount >= this.maxWr) {
      throw new SpiError('ENOMEM', `slot ${slot}: ${this.maxWr} entries are outstanding already`);
    }
    this.held[slot] = 1;
    this.heldCount += 1;
    this.waiting[this.tail & slots.mask] = slot;
    this.tail = (this.tail + 1) >>> 0;
  }

  /** Raises one event for each `setLimit`: when the limit is reached, or at once if it has been. */
  private watchLimit(): void {
    if (this.limit === 0 || this.available >= this.limit) return;
    this.limit = 0;
    this.host.notify(this, AsyncEventType.SRQ_LIMIT_REACHED);
  }

  /** Slots keep their numbers and contents; indices of the submissions go on. */
  private grow(entries: number): void {
    const { slots, submissions } = this.ring;
    const larger = {
      slots: Ring.allocate(entries, slots.strideBytes),
      submissions: Ring.allocate(entries, SUBMISSION_BYTES),
    };
    larger.slots.copyEntries(slots);
    larger.submissions.consumer = submissions.consumer;
    larger.submissions.producer = submissions.producer;
    for (let i = submissions.consumer; i !== submissions.producer; i = (i + 1) >>> 0) {
      const word = submissions.words[submissions.wordOf(i)]!;
      larger.submissions.words[larger.submissions.wordOf(i)] = word;
    }
    const waiting = new Uint32Array(entries);
    for (let i = this.head; i !== this.tail; i = (i + 1) >>> 0) {
      waiting[i & (entries - 1)] = this.waiting[i & slots.mask]!;
    }
    const held = new Uint8Array(entries);
    held.set(this.held);
    this.ring = larger;
    this.words = larger.slots.words;
    this.waiting = waiting;
    this.held = held;
  }

  private checkThere(): void {
    if (this.destroyed) throw new SpiError('EINVAL', `SRQ ${this.srqn} is destroyed`);
  }
}

function checkedWr(maxWr: number, most: number): number {
  checkInteger('maxWr', maxWr, 1, most, einval);
  return maxWr;
}

// Shared receive queues by number, which has 24 bits.

/** 0 says "none" in a completion. */
const FIRST_SRQN = 1;
const LAST_SRQN = 0xffffff;

export class SharedReceiveTable {
  private readonly queues = new KeyTable<SoftSharedReceiveQueue>();
  /** Set from the first one on. */
  private numbers: FreshNumbers | undefined = undefined;

  /** @param slot the top byte of all numbers, where others have the device too */
  constructor(
    private readonly random: Random,
    private readonly slot?: number,
  ) {}

  get size(): number {
    return this.queues.size;
  }

  find(srqn: number): SoftSharedReceiveQueue | undefined {
    return this.queues.find(srqn);
  }

  /** @throws SpiError('ENOMEM') when all numbers are in use */
  freshNumber(): number {
    this.numbers ??= this.numbersOfSlot();
    return this.numbers.take('shared receive queue', (srqn) => this.find(srqn) !== undefined);
  }

  private numbersOfSlot(): FreshNumbers {
    const { random, slot } = this;
    const first = slot === undefined ? 0 : slot << SLOT_SHIFT.QPN;
    const last = slot === undefined ? LAST_SRQN : first | 0xffff;
    return new FreshNumbers(random, Math.max(first, FIRST_SRQN), last);
  }

  insert(srq: SoftSharedReceiveQueue): void {
    this.queues.insert(srq.srqn, srq);
  }

  remove(srq: SoftSharedReceiveQueue): void {
    this.queues.remove(srq.srqn);
  }

  /** The device closes: whatever is left goes. */
  destroyAll(): void {
    for (const srq of [...this.queues]) srq.destroy();
  }
}
