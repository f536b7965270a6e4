/**
 * Where a queue pair's receives come from: its own ring, or a shared receive queue. The entry taken
 * last stays readable here until the next one is taken.
 */
import { RQE, Ring } from '../../core/spi/index.js';

export interface ReceiveQueue {
  /** Words of the ring that holds the entries. */
  readonly words: Uint32Array;
  readonly maxSge: number;
  /** Number of the shared receive queue, 0 if it is none. */
  readonly srqn: number;
  /** WQE_INDEX of the completion of the entry taken last. */
  readonly index: number;
  /** Takes the next entry: the index in `words` of its first word, or -1 when there is none. */
  take(): number;
}

export class OwnReceiveQueue implements ReceiveQueue {
  readonly words: Uint32Array;
  readonly srqn = 0;
  index = 0;
  private next: number;
  private known: number;

  constructor(
    readonly ring: Ring,
    readonly maxSge: number,
  ) {
    this.words = ring.words;
    this.next = ring.consumer;
    this.known = this.next;
  }

  take(): number {
    if (this.next === this.known) {
      this.known = this.ring.producer;
      if (this.next === this.known) return -1;
    }
    this.index = this.next;
    this.next = (this.next + 1) >>> 0;
    this.ring.consumer = this.next;
    return this.ring.wordOf(this.index);
  }

  /** Forgets what is posted (RESET). */
  discard(): void {
    this.next = this.ring.producer;
    this.known = this.next;
    this.ring.consumer = this.next;
  }
}

/** Number of segments of an entry; more than `maxSge` means that the entry is malformed. */
export function segmentCount(words: Uint32Array, entry: number): number {
  return words[entry + RQE.NUM_SGE]!;
}
