/** READ and atomic requests in flight: as many as the peer has granted, a ring of their ends. */
import { psnDiff } from './wire/psn.js';

const NONE = new Uint32Array(0);

export class RcOutstandingReads {
  count = 0;
  /** One after the last PSN of each, oldest first; there from the first of them on. */
  private ends = NONE;
  private depth = 1;
  private head = 0;

  /** @param depth requests that the peer has granted */
  begin(depth: number): void {
    this.depth = Math.max(1, depth);
    this.ends = NONE;
    this.clear();
  }

  get full(): boolean {
    return this.count >= this.depth;
  }

  add(end: number): void {
    if (this.ends === NONE) this.ends = new Uint32Array(this.depth);
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
