/**
 * For an EVD of an endpoint: the other EVDs of the same endpoints, where a failed completion is
 * what the consumer may be waiting for here.
 */

/** The feeding side of such an EVD. */
export interface ErrorSource {
  /** Failed completions are to be taken in as they come (1), or not any more (-1). */
  watched(change: 1 | -1): void;
  /** Looks at its completion queue. */
  scan(): number;
}

/** Sources that a poll looks at when it has found nothing, of as many as there are. */
const SOURCES_A_POLL = 16;

export class ErrorSources {
  /** How many endpoints have named each. */
  private readonly counts = new Map<ErrorSource, number>();
  /** Where polls go on to look. */
  private round: Iterator<ErrorSource, undefined> = this.counts.keys();
  private vigilant = false;

  add(source: ErrorSource): void {
    const count = this.counts.get(source) ?? 0;
    this.counts.set(source, count + 1);
    if (count === 0 && this.vigilant) source.watched(1);
  }

  remove(source: ErrorSource): void {
    const left = (this.counts.get(source) ?? 1) - 1;
    if (left > 0) this.counts.set(source, left);
    else if (this.counts.delete(source) && this.vigilant) source.watched(-1);
  }

  /** Failures are watched for, or not. */
  watch(vigilant: boolean): void {
    if (vigilant === this.vigilant) return;
    this.vigilant = vigilant;
    for (const source of this.counts.keys()) source.watched(vigilant ? 1 : -1);
  }

  /** For a poll that has found nothing: failures are taken in. Each poll looks at the next few. */
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
