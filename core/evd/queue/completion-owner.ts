/**
 * The owner of a completion: found by the `context` number of its queue pair, in one table look-up.
 */
import { assert } from '../../spi/checks/index.js';
import { DatError } from '../../errors/index.js';
import { CQE } from '../../spi/index.js';
import type { DatEvent } from '../events/event.js';
import type { EventBatch } from './event-batch.js';

/**
 * The effect of a completion on the consumer: nothing (suppressed); an event; or an event that does
 * not notify (unsignalled), which waits for the next one that does, or for a dequeue. A failed
 * completion is always an event that notifies. An `absent` one is nothing either, and does not hold
 * its ring entry behind events that are not taken: keep-alives make any number of them.
 */
export type CompletionView = boolean | 'silent' | 'absent';

/** An endpoint (or shared receive queue) as the event dispatchers see it. */
export interface CompletionOwner {
  /**
   * Called exactly once for each completion, in ring order, when core first sees it: before it can
   * be dequeued, and even if it never is. Entries are reclaimed, early ESTABLISHED is handled, and
   * connections break here. Events that it posts to this EVD are placed before this completion (or
   * behind it: `EventPlace`).
   * @param words the words of the completion ring
   * @param at index of the entry's first word
   */
  onCompletion(words: Uint32Array, at: number): CompletionView;
  /** Makes the event, at the moment when it is handed over. */
  toEvent(words: Uint32Array, at: number): DatEvent;
  /** As `toEvent`, without an object: `batch.setDto` or `batch.setEvent`. Default: `toEvent`. */
  fill?(batch: EventBatch, slot: number, words: Uint32Array, at: number): void;
}

const SLOT_BITS = 20;
const SLOT_MASK = (1 << SLOT_BITS) - 1;
const GENERATIONS = 0xfff;

/**
 * The owners of one device or IA. A context is slot (20 bits) and generation (12 bits): a
 * completion that outlives its queue pair finds no owner, instead of the slot's next one.
 */
export class CompletionOwners {
  private readonly contexts: number[] = [];
  private readonly owners: (CompletionOwner | undefined)[] = [];
  private readonly vacant: number[] = [];
  private readonly shared = new Map<number, CompletionOwner>();

  /** @throws DatError DAT_INSUFFICIENT_RESOURCES beyond 2^20 owners */
  allocate(owner: CompletionOwner): number {
    const reused = this.vacant.shift();
    if (reused !== undefined) return this.occupy(reused, owner);
    if (this.owners.length > SLOT_MASK) {
      throw new DatError('DAT_INSUFFICIENT_RESOURCES', {
        subtype: 'DAT_RESOURCE_TEP',
        operation: 'owners.allocate',
        message: `all ${SLOT_MASK + 1} completion contexts are in use`,
        value: SLOT_MASK + 1,
      });
    }
    this.owners.push(undefined);
    this.contexts.push(0);
    return this.occupy(this.owners.length - 1, owner);
  }

  /** Completions of this context are dropped from now on. Freeing it again does nothing. */
  free(context: number): void {
    const slot = context & SLOT_MASK;
    if (this.contexts[slot] !== context || this.owners[slot] === undefined) return;
    this.owners[slot] = undefined;
    this.vacant.push(slot);
  }

  /** Gives a context that is in use to another owner. */
  replace(context: number, owner: CompletionOwner): void {
    assert(this.lookup(context) !== undefined, 'a context that changes hands is in use', context);
    this.owners[context & SLOT_MASK] = owner;
  }

  /** The owner, or undefined when it has been freed. */
  lookup(context: number): CompletionOwner | undefined {
    const slot = context & SLOT_MASK;
    return this.contexts[slot] === context ? this.owners[slot] : undefined;
  }

  /**
   * The owner of the completion at `words[at]`: that of its queue pair. If the queue pair is
   * destroyed, or of another process (XRC targets), the shared receive queue of its receive.
   */
  ownerOf(words: Uint32Array, at: number): CompletionOwner | undefined {
    const owner = this.lookup(words[at + CQE.QP_CONTEXT] ?? 0);
    return owner ?? this.shared.get(words[at + CQE.SRQN] ?? 0);
  }

  /** Registers a shared receive queue by its number. */
  addShared(srqn: number, owner: CompletionOwner): void {
    this.shared.set(srqn, owner);
  }

  removeShared(srqn: number): void {
    this.shared.delete(srqn);
  }

  /** Number of owners. */
  get size(): number {
    return this.owners.length - this.vacant.length;
  }

  private occupy(slot: number, owner: CompletionOwner): number {
    const previous = (this.contexts[slot] ?? 0) >>> SLOT_BITS;
    const generation = (previous % GENERATIONS) + 1;
    const context = ((generation << SLOT_BITS) | slot) >>> 0;
    this.contexts[slot] = context;
    this.owners[slot] = owner;
    return context;
  }
}
