/**
 * Core's side of a completion ring. Completions are scanned (shown to their owners, once, in order)
 * and later taken. Numbers of completions are u32, free-running, and survive a resize of the ring.
 */
import { type CompletionQueue, CQE, WcFlags, WcStatus } from '../../spi/index.js';
import type { CompletionOwners } from './completion-owner.js';
import type { DatEvent } from '../events/event.js';
import type { EventBatch } from './event-batch.js';

export class CompletionCursor {
  /** Number of the next completion to take. */
  next = 0;
  /** Number of the next completion to scan. */
  scanned = 0;
  /** True during an `onCompletion`. */
  scanning = false;
  /** An event has been posted behind the completion being scanned, which keeps its number. */
  followed = false;
  /** Completions that the consumer never saw, because their owner was freed. */
  dropped = 0;
  /** The highest notify level that the last `scan` found. */
  notice: NotifyLevel = NotifyLevel.NONE;
  private hiddenCount = 0;
  /** By number: completions between `next` and `scanned` that the consumer must not see. */
  private hidden: Uint8Array;
  private mask: number;
  /** Ring index = number + base. */
  private base: number;

  constructor(
    private readonly cq: CompletionQueue,
    private readonly owners: CompletionOwners,
    /** Notify level of a completion that succeeds and is not flagged as solicited. */
    private readonly plain: NotifyLevel,
  ) {
    this.hidden = new Uint8Array(cq.ring.entries);
    this.mask = cq.ring.mask;
    this.base = cq.ring.consumer;
  }

  /** Completions scanned, visible and not yet taken. */
  get pending(): number {
    return ((this.scanned - this.next) >>> 0) - this.hiddenCount;
  }

  /** Shows new completions to their owners; returns how many the consumer may see. */
  scan(): number {
    if (this.scanning) return 0;
    const readable = this.cq.poll();
    let end = (this.cq.ring.consumer - this.base + readable) >>> 0;
    if (end === this.scanned) return 0;
    const { ring } = this.cq;
    const { words } = ring;
    let visible = 0;
    this.notice = NotifyLevel.NONE;
    this.followed = false;
    this.scanning = true;
    try {
      while (this.scanned !== end) {
        const at = ring.wordOf(this.scanned + this.base);
        const owner = this.owners.ownerOf(words, at);
        if (owner === undefined) this.dropped++;
        const seen = owner?.onCompletion(words, at) ?? false;
        if (seen === 'absent' && !this.followed) {
          this.remove();
          end = (end - 1) >>> 0;
          continue;
        }
        if (seen === false || seen === 'absent') this.hide(this.scanned);
        else visible++;
        if (seen === true) this.raiseNotice(words[at + CQE.CONTROL] ?? 0);
        this.scanned = (this.scanned + 1) >>> 0;
      }
    } finally {
      this.scanning = false;
    }
    this.skipHidden();
    return visible;
  }

  /** True if every scanned completion has been taken. */
  get empty(): boolean {
    return this.next === this.scanned;
  }

  /** Takes the next completion (there is one); undefined when its owner is gone. */
  take(): DatEvent | undefined {
    const words = this.cq.ring.words;
    const at = this.wordOfNext();
    const event = this.owners.ownerOf(words, at)?.toEvent(words, at);
    this.advance();
    if (event === undefined) this.dropped++;
    return event;
  }

  /**
   * Takes the next completion (there is one) into a batch; false when its owner is gone. The
   * entries taken go back to the provider with `commit`.
   */
  takeInto(batch: EventBatch, slot: number): boolean {
    const words = this.cq.ring.words;
    const at = this.wordOfNext();
    const owner = this.owners.ownerOf(words, at);
    if (owner === undefined) this.dropped++;
    else if (owner.fill === undefined) batch.setEvent(slot, owner.toEvent(words, at));
    else owner.fill(batch, slot, words, at);
    this.step();
    return owner !== undefined;
  }

  /** Gives the entries taken so far back to the provider. */
  commit(): void {
    this.cq.ring.consumer = this.next + this.base;
  }

  /**
   * Drops an owner's completions in the queue: they are hidden and counted.
   * @param srqn the owner is a shared receive queue, and the context belongs to no queue pair
   */
  purge(context: number, srqn?: number): void {
    for (let n = this.next; n !== this.scanned; n = (n + 1) >>> 0) {
      if (!this.isVisibleOf(n, context, srqn)) continue;
      this.hide(n);
      this.dropped++;
    }
    this.skipHidden();
  }

  /** Completions of a context that the consumer has not taken yet. */
  left(context: number): number {
    let left = 0;
    for (let n = this.next; n !== this.scanned; n = (n + 1) >>> 0) {
      if (this.isVisibleOf(n, context)) left++;
    }
    return left;
  }

  private isVisibleOf(number: number, context: number, srqn?: number): boolean {
    const { ring } = this.cq;
    const at = ring.wordOf(number + this.base);
    if (ring.words[at + CQE.QP_CONTEXT] !== context || this.isHidden(number)) return false;
    return srqn === undefined || ring.words[at + CQE.SRQN] === srqn;
  }

  /** The ring has been replaced: unread completions have moved to the new one, in order. */
  rebase(): void {
    const ring = this.cq.ring;
    const hidden = new Uint8Array(ring.entries);
    for (let n = this.next; n !== this.scanned; n = (n + 1) >>> 0) {
      hidden[n & ring.mask] = this.isHidden(n) ? 1 : 0;
    }
    this.hidden = hidden;
    this.mask = ring.mask;
    this.base = (ring.consumer - this.next) >>> 0;
  }

  private raiseNotice(control: number): void {
    const failed = (control & 0xff) !== WcStatus.SUCCESS;
    const loud = failed || ((control >>> 16) & WcFlags.SOLICITED) !== 0;
    const notice = loud ? NotifyLevel.ALWAYS : this.plain;
    if (notice > this.notice) this.notice = notice;
  }

  private wordOfNext(): number {
    return this.cq.ring.wordOf(this.next + this.base);
  }

  private advance(): void {
    this.step();
    this.commit();
  }

  private step(): void {
    this.next = (this.next + 1) >>> 0;
    if (this.hiddenCount > 0) this.passHidden();
  }

  private isHidden(number: number): boolean {
    return this.hidden[number & this.mask] === 1;
  }

  private hide(number: number): void {
    this.hidden[number & this.mask] = 1;
    this.hiddenCount++;
  }

  /**
   * Removes the completion being scanned from the ring. Untaken ones in front of it move up by one
   * and keep their numbers, so that it holds no entry while the consumer does not look.
   */
  private remove(): void {
    const { ring } = this.cq;
    for (let n = this.scanned; n !== this.next; n = (n - 1) >>> 0) {
      const from = ring.wordOf(n - 1 + this.base);
      ring.words.copyWithin(ring.wordOf(n + this.base), from, from + ring.strideWords);
    }
    this.base = (this.base + 1) >>> 0;
    this.commit();
  }

  /** Gives hidden completions at the front back to the provider. */
  private skipHidden(): void {
    const before = this.next;
    if (this.hiddenCount > 0) this.passHidden();
    if (this.next !== before) this.commit();
  }

  private passHidden(): void {
    while (this.next !== this.scanned && this.isHidden(this.next)) {
      this.hidden[this.next & this.mask] = 0;
      this.hiddenCount--;
      this.next = (this.next + 1) >>> 0;
    }
  }
}

// How a new event notifies; a higher level includes the lower ones. Every event is queued,
// whatever its level.

export const NotifyLevel = {
  /** No notification: a completion of a request that was posted UNSIGNALLED. */
  NONE: 0,
  /** A completion that is known not to be solicited: does not notify on a SOLICITED EVD. */
  UNSOLICITED: 1,
  /** A completion of a device that does not say: notifies on a SOLICITED EVD if the device does. */
  UNKNOWN: 2,
  /** A solicited or failed completion, and every event that is no completion. */
  ALWAYS: 3,
} as const;
export type NotifyLevel = (typeof NotifyLevel)[keyof typeof NotifyLevel];
