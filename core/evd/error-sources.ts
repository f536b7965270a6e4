/**
 * The other EVDs of the same endpoints. A consumer waiting here may be waiting for a failed
 * completion there.
 */
import type { EvdFeed } from './evd-feed.js';

/** Sources that an unsuccessful poll looks at, out of all of them. */
const SOURCES_A_POLL = 16;

export class ErrorSources {
  /** Number of endpoints that have named each source. */
  private readonly counts = new Map<EvdFeed, number>();
  /** Where the next poll continues. */
  private round: Iterator<EvdFeed, undefined> = this.counts.keys();
  private vigilant = false;

  add(source: EvdFeed): void {
    const count = this.counts.get(source) ?? 0;
    this.counts.set(source, count + 1);
    if (count === 0 && this.vigilant) source.watched(1);
  }

  remove(source: EvdFeed): void {
    const left = (this.counts.get(source) ?? 1) - 1;
    if (left > 0) this.counts.set(source, left);
    else if (this.counts.delete(source) && this.vigilant) source.watched(-1);
  }

  /** Starts or stops watching for failures. */
  watch(vigilant: boolean): void {
    if (vigilant === this.vigilant) return;
    this.vigilant = vigilant;
    for (const source of this.counts.keys()) source.watched(vigilant ? 1 : -1);
  }

  /** Takes in failures after an unsuccessful poll. Each poll looks at the next few sources. */
  look(): void {
    for (let left = Math.min(SOURCES_A_POLL, this.counts.size); left > 0; left--) {
      let { value } = this.round.next();
      if (value === undefined) {
        this.round = this.counts.keys();
        ({ value } = this.round.next());
      }
      value?.scan();
    }
  }
}
