/**
 * The source of a queue pair's receives: its own ring, a shared receive queue, or (XRC) the shared
 * receive queue that the packet names. Transports know only this. An entry from `take` belongs to
 * the queue pair until it completes or is handed back.
 */
import { type QueuePairInit, type Ring, RQE } from '../../../core/spi/index.js';
import type { SoftCompletionQueue } from '../completions/completion-queue.js';
import type { Domain } from '../memory/domain.js';

export interface ReceiveSource {
  /** Words of the ring that holds the entries. */
  readonly words: Uint32Array;
  readonly maxSge: number;
  /** The domain that the keys of its segments belong to. */
  readonly domain: Domain;
  /** Number of the shared receive queue, 0 if it is none. */
  readonly srqn: number;
  /** The receive ring of a queue pair that has one of its own. */
  readonly ownRing: Ring | undefined;
  /** The queue where its receives complete (XRC); undefined: that of the queue pair. */
  readonly completionQueue: SoftCompletionQueue | undefined;
  /** Entries that wait to be taken; -1 where others may take them. */
  readonly posted: number;
  /** True if it is a shared queue that has been destroyed. */
  readonly destroyed: boolean;
  /** Takes the next entry: its WQE_INDEX, or -1 when there is none. */
  take(): number;
  /** Index in `words` of the first word of an entry. */
  wordOf(index: number): number;
  /** An entry taken has completed. */
  release(index: number): void;
  /** An entry taken is not used after all: it is the next to be taken. */
  putBack(index: number): void;
  /** Takes the next entry to flush when a queue pair goes to ERR, or -1: shared receives stay. */
  takeForFlush(): number;
  /** Discards posted receives (RESET), unless others share them. */
  discard(): void;
}

export class OwnReceiveQueue implements ReceiveSource {
  readonly srqn = 0;
  readonly completionQueue = undefined;
  private next: number;
  private known: number;

  constructor(
    readonly ownRing: Ring,
    readonly maxSge: number,
    readonly domain: Domain,
  ) {
    this.next = ownRing.consumer;
    this.known = this.next;
  }

  get words(): Uint32Array {
    return this.ownRing.words;
  }

  get destroyed(): boolean {
    return false;
  }

  get posted(): number {
    return (this.ownRing.producer - this.next) >>> 0;
  }

  take(): number {
    if (this.next === this.known) {
      this.known = this.ownRing.producer;
      if (this.next === this.known) return -1;
    }
    const index = this.next;
    this.next = (index + 1) >>> 0;
    // For a look from outside: an atomic store costs a call, so not for every entry.
    if (this.next === this.known || (this.next & 15) === 0) this.ownRing.consumer = this.next;
    return index;
  }

  wordOf(index: number): number {
    return this.ownRing.wordOf(index);
  }

  release(): void {
    // Core counts it as free when it reads the completion.
  }

  putBack(index: number): void {
    this.next = index;
  }

  takeForFlush(): number {
    return this.take();
  }

  discard(): void {
    this.next = this.ownRing.producer;
    this.known = this.next;
    this.ownRing.consumer = this.next;
  }
}

/** The receives of a queue pair that has none of its own (XRC). */
class NoReceives implements ReceiveSource {
  readonly words = new Uint32Array(0);
  readonly maxSge = 0;
  readonly srqn = 0;
  readonly ownRing = undefined;
  readonly completionQueue = undefined;
  readonly destroyed = false;
  readonly posted = -1;

  constructor(readonly domain: Domain) {}

  take(): number {
    return -1;
  }

  wordOf(): number {
    return 0;
  }

  release(): void {
    // None was taken.
  }

  putBack(): void {
    // None was taken.
  }

  takeForFlush(): number {
    return -1;
  }

  discard(): void {
    // There are none.
  }
}

export function noReceives(init: QueuePairInit): ReceiveSource {
  return new NoReceives(init.pd as Domain);
}

/** Number of segments of an entry; more than `maxSge` means that the entry is malformed. */
export function segmentCount(words: Uint32Array, entry: number): number {
  return words[entry + RQE.NUM_SGE]!;
}
