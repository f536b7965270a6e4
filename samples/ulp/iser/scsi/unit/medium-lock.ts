/**
 * Keeps commands that read and then write (COMPARE AND WRITE, ORWRITE) apart from all that touches
 * the medium meanwhile. Held only while the backend works, never while an initiator is waited for.
 */
export class MediumLock {
  private shared = 0;
  private isExclusive = false;
  private readonly waiting: { readonly isExclusive: boolean; readonly enter: () => void }[] = [];

  /** With any number of others of its kind. */
  async withOthers<T>(work: () => Promise<T>): Promise<T> {
    if (this.isExclusive || this.waiting.length > 0) await this.queue(false);
    else this.shared++;
    try {
      return await work();
    } finally {
      this.shared--;
      this.admit();
    }
  }

  async alone<T>(work: () => Promise<T>): Promise<T> {
    if (this.isExclusive || this.shared > 0 || this.waiting.length > 0) await this.queue(true);
    else this.isExclusive = true;
    try {
      return await work();
    } finally {
      this.isExclusive = false;
      this.admit();
    }
  }

  private queue(isExclusive: boolean): Promise<void> {
    return new Promise((enter) => this.waiting.push({ isExclusive, enter }));
  }

  /** Lets in what may enter, in the order of arrival. */
  private admit(): void {
    for (let next = this.waiting[0]; next !== undefined; next = this.waiting[0]) {
      if (this.isExclusive || (next.isExclusive && this.shared > 0)) return;
      this.waiting.shift();
      if (next.isExclusive) this.isExclusive = true;
      else this.shared++;
      next.enter();
    }
  }
}
