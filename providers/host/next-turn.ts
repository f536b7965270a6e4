/**
 * A task for the next turn of the event loop, which keeps the process alive only on request. An
 * unref'd immediate is not enough: it does not wake a loop that waits for something else, so it
 * would run only after that. A timeout beside it wakes the loop after a millisecond; a loop that
 * turns anyway does not wait for it.
 */
export class NextTurn {
  private immediate: NodeJS.Immediate | undefined;
  private timeout: NodeJS.Timeout | undefined;
  private processHold = false;
  private readonly run = (): void => {
    this.cancel();
    this.task();
  };

  constructor(private readonly task: () => void) {}

  get isPending(): boolean {
    return this.immediate !== undefined;
  }

  /** Asking again before it has run is asking once. */
  request(): void {
    if (this.immediate !== undefined) return;
    this.immediate = setImmediate(this.run);
    if (this.processHold) return;
    this.immediate.unref();
    this.timeout = setTimeout(this.run, 1).unref();
  }

  cancel(): void {
    if (this.immediate) clearImmediate(this.immediate);
    if (this.timeout) clearTimeout(this.timeout);
    this.immediate = this.timeout = undefined;
  }

  setProcessHold(alive: boolean): void {
    if (alive === this.processHold) return;
    this.processHold = alive;
    if (!this.isPending) return;
    this.cancel();
    this.request();
  }
}
