/**
 * A task for the next turn of the event loop, which keeps the process alive only when told to. An
 * immediate that is unref'd would not do: it does not wake a loop that waits for something else, so
 * it runs when that comes, whenever that is. A timeout does wake it, a millisecond later.
 */
export class NextTurn {
  #immediate: NodeJS.Immediate | undefined;
  #timeout: NodeJS.Timeout | undefined;
  #keepAlive = false;
  readonly #run = (): void => {
    this.#immediate = this.#timeout = undefined;
    this.task();
  };

  constructor(private readonly task: () => void) {}

  get isPending(): boolean {
    return this.#immediate !== undefined || this.#timeout !== undefined;
  }

  /** Asking again before it has run is asking once. */
  request(): void {
    if (this.isPending) return;
    if (this.#keepAlive) this.#immediate = setImmediate(this.#run);
    else this.#timeout = setTimeout(this.#run, 1).unref();
  }

  cancel(): void {
    if (this.#immediate) clearImmediate(this.#immediate);
    if (this.#timeout) clearTimeout(this.#timeout);
    this.#immediate = this.#timeout = undefined;
  }

  setKeepAlive(alive: boolean): void {
    if (alive === this.#keepAlive) return;
    this.#keepAlive = alive;
    if (!this.isPending) return;
    this.cancel();
    this.request();
  }
}
