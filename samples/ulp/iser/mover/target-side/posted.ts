/**
 * The requests of one endpoint, in the order of their posting, which is the order of their
 * completion: what is to happen when each has completed. A success that nothing waits for is not
 * told by the device (SUPPRESS), but by a later one.
 */

/** Hears of the end of a request; `error` is why it has failed. */
export type Completed = (error?: Error) => void;
/** Posts under this cookie. @param isTold whether its success makes a completion */
export type PostRequest = (cookie: number, isTold: boolean) => void;

interface Waiting {
  readonly post: PostRequest;
  readonly completed: Completed;
  readonly isAwaited: boolean;
}

/** Of requests that nothing waits for, each so many makes a completion. */
const EACH = 8;

export class PostedRequests {
  /** By cookie modulo their number. */
  private readonly slots: (Completed | undefined)[];
  private readonly waiting: Waiting[] = [];
  /** Free-running counts: requests posted, told to have completed, and the last that is to tell. */
  private posted = 0;
  private done = 0;
  private lastTold = 0;
  private ended: Error | undefined = undefined;

  /**
   * @param limit requests posted at a time, at least 16; more wait for their turn, in order
   * @param onPost called before each request
   */
  constructor(
    readonly limit: number,
    private readonly onPost: () => void = () => {},
  ) {
    this.slots = new Array<Completed | undefined>(limit).fill(undefined);
  }

  /** No completion is to come, and nothing waits. */
  get isIdle(): boolean {
    return this.done >= this.lastTold && this.waiting.length === 0;
  }

  /**
   * Posts a request, now or behind those that wait. `completed` is called once, and never here.
   * @param isAwaited it is told of at once; otherwise with a later one, or at the end
   */
  post(post: PostRequest, completed: Completed, isAwaited: boolean): void {
    if (this.ended !== undefined) {
      const why = this.ended;
      queueMicrotask(() => completed(why));
    } else if (this.waiting.length > 0 || this.isFull) {
      this.waiting.push({ post, completed, isAwaited });
    } else this.begin(post, completed, isAwaited);
  }

  /** A request has completed, and with it all before it. @param error why it has failed */
  complete(cookie: number, error?: Error): void {
    while (this.done < cookie) this.settle();
    if (this.done === cookie) this.settle(error);
    while (this.ended === undefined && !this.isFull) {
      const next = this.waiting.shift();
      if (next === undefined) return;
      this.begin(next.post, next.completed, next.isAwaited);
    }
  }

  /** None completes any more: the queue pair is gone. */
  end(why: Error): void {
    this.ended ??= why;
    while (this.done < this.posted) this.settle(why);
    for (const { completed } of this.waiting.splice(0)) completed(why);
  }

  private get isFull(): boolean {
    return this.posted - this.done >= this.limit;
  }

  private settle(error?: Error): void {
    const at = this.done++ % this.limit;
    const completed = this.slots[at];
    this.slots[at] = undefined;
    completed?.(error);
  }

  private begin(post: PostRequest, completed: Completed, isAwaited: boolean): void {
    this.onPost();
    const cookie = this.posted;
    const isTold = isAwaited || cookie + 1 - this.lastTold >= EACH;
    try {
      post(cookie, isTold);
    } catch (error) {
      // The connection has ended; the event that says so comes.
      queueMicrotask(() => completed(error as Error));
      return;
    }
    this.slots[cookie % this.limit] = completed;
    this.posted++;
    if (isTold) this.lastTold = this.posted;
  }
}
