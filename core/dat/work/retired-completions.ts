/**
 * Completions of queues that `ep.reset()` has ended. They stay on their event dispatchers until the
 * consumer takes them, though the queue pair and its rings are destroyed.
 */
import type { CompletionOwner, CompletionView, DatEvent, Evd } from '../../evd/index.js';
import { CQE } from '../../spi/index.js';
import { dtoEvent, isReceive } from '../common/dto-event.js';
import type { EpBinds } from './binds.js';
import type { Ep } from '../endpoint/ep.js';

export class EpLeftovers implements CompletionOwner {
  /** Completions not taken yet. */
  private left = 0;

  /**
   * @param context of the completions: reserved until the last is taken
   * @param evds where they are queued; all have been scanned
   * @param binds completed binds that are not dequeued
   */
  constructor(
    private readonly ep: Ep,
    private readonly context: number,
    private readonly evds: readonly Evd[],
    private readonly binds: EpBinds | undefined,
  ) {
    for (const evd of evds) this.left += evd.feed.left(context);
    if (this.left === 0) this.end();
    else ep.core.owners.replace(context, this);
  }

  /** True if the consumer has taken all of them, or their event dispatchers were freed. */
  get isOver(): boolean {
    return this.left === 0 || this.evds.every((evd) => evd.isFreed);
  }

  /** The queue pair is destroyed: only frees the slot of a shared queue's receive. */
  onCompletion(words: Uint32Array, at: number): CompletionView {
    if (isReceive(words[at + CQE.CONTROL] ?? 0))
      this.ep.srq?.slots.reclaim(words[at + CQE.WQE_INDEX] ?? 0);
    return false;
  }

  toEvent(words: Uint32Array, at: number): DatEvent {
    if (--this.left === 0) this.end();
    const bind = isReceive(words[at + CQE.CONTROL] ?? 0)
      ? undefined
      : this.binds?.eventOf(words, at);
    return bind ?? dtoEvent(this.ep, words, at);
  }

  /** The endpoint is freed: drops the completions not taken. */
  drop(): void {
    for (const evd of this.evds) evd.feed.purge(this.context);
    this.end();
  }

  private end(): void {
    this.ep.core.owners.free(this.context);
  }
}
