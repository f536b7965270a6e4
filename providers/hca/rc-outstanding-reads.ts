/** READ and atomic requests in flight: as many as the peer has granted, a ring of their ends. */
import { psnDiff } from './wire/psn.js';

export class RcOutstandingReads {
  count = 0;
  /** One after the last PSN of each, oldest first. */
  private ends = new Uint32Array(1);
  private head = 0;

  /** @param depth requests that the peer has granted */
  begin(depth: number): void {
    this.ends = new Uint32Array(Math.max(1, depth));
    this.clear();
  }

  get full(): boolean {
    return this.count >= this.ends.length;
  }

  add(end: number): void {
    this.ends[(this.head + this.count) % this.ends.length] = end;
    this.count += 1;
  }

  /** Every PSN before `una` has been answered. */
  retire(una: number): void {
    while (this.count > 0 && psnDiff(una, this.ends[this.head]!) >= 0) {
      this.head = (this.head + 1) % this.ends.length;
      this.count -= 1;
    }
  }

  /** They will be asked for again. */
  clear(): void {
    this.head = 0;
    this.count = 0;
  }
}
