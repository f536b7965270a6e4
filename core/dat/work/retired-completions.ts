/**
 * Completions of a life that `ep.reset()` has ended: they stay on their event dispatchers until the
 * consumer takes them, though the queue pair and its rings are gone.
 */
import type {
  CompletionOwner,
  CompletionView,
  DatEvent,
  Evd,
  EventEndpoint,
} from '../../evd/index.js';
import { CQE } from '../../spi/index.js';
import { dtoEvent, isReceive } from '../common/dto-event.js';
import type { EpBinds } from './binds.js';

export class EpLeftovers implements CompletionOwner {
  /** Completions that are still to be taken. */
  private left = 0;

  /**
   * @param context under which the completions were written: theirs until the last is taken
   * @param evds where they wait; all that have come have been scanned
   * @param binds those that have completed and are not dequeued
   */
  constructor(
    private readonly ep: EventEndpoint,
    private readonly context: number,
    private readonly evds: readonly Evd[],
    private readonly binds: EpBinds | undefined,
  ) {
    for (const evd of evds) this.left += evd.feed.left(context);
    if (this.left === 0) this.end();
    else ep.core.owners.replace(context, this);
  }

  /** The consumer has taken them all, or they went with their event dispatchers. */
  get isOver(): boolean {
    return this.left === 0 || this.evds.every((evd) => evd.isFreed);
  }

  /** The queue pair is gone: only a receive of a shared queue is noted, as it is free again. */
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

  /** The endpoint is freed: what has not been taken is dropped. */
  drop(): void {
    for (const evd of this.evds) evd.feed.purge(this.context);
    this.end();
  }

  private end(): void {
    this.ep.core.owners.free(this.context);
  }
}
