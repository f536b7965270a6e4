/** READ and atomic requests in flight: as many as the peer has granted, a ring of their ends. */
import { psnDiff } from '../wire/psn.js';

export class RcOutstandingReads {
  count = 0;
  /** One after the last PSN of each, oldest first. */
  private readonly ends: Uint32Array;
  private readonly depth: number;
  private head = 0;

  /** @param depth requests that the peer has granted */
  constructor(depth: number) {
    this.depth = Math.max(1, depth);
    this.ends = new Uint32Array(this.depth);
  }

  get full(): boolean {
    return this.count >= this.depth;
  }

  add(end: number): void {
    this.ends[(this.head + this.count) % this.depth] = end;
    this.count += 1;
  }

  /** Every PSN before `una` has been answered. */
  retire(una: number): void {
    while (this.count > 0 && psnDiff(una, this.ends[this.head]!) >= 0) {
      this.head = (this.head + 1) % this.depth;
      this.count -= 1;
    }
  }

  /** They will be asked for again. */
  clear(): void {
    this.head = 0;
    this.count = 0;
  }
}
