/** The requests of one endpoint, by cookie: what is to happen when each has completed. */

/** Hears of the end of a request; `error` is why it has failed. */
export type Completed = (error?: Error) => void;
/** Posts under this cookie. */
export type PostRequest = (cookie: number) => void;

interface Waiting {
  readonly post: PostRequest;
  readonly completed: Completed;
}

export class PostedRequests {
  private readonly slots: (Completed | undefined)[];
  private readonly free: number[];
  private readonly waiting: Waiting[] = [];
  private ended: Error | undefined = undefined;

  /** @param limit requests posted at a time; more wait for their turn, in order */
  constructor(readonly limit: number) {
    this.slots = new Array<Completed | undefined>(limit).fill(undefined);
    this.free = Array.from({ length: limit }, (_, at) => limit - 1 - at);
  }

  /** Nothing is posted, and nothing waits. */
  get isIdle(): boolean {
    return this.free.length === this.limit && this.waiting.length === 0;
  }

  /** Posts a request, now or behind those that wait. `completed` is called once, and never here. */
  post(post: PostRequest, completed: Completed): void {
    if (this.ended !== undefined) {
      const why = this.ended;
      queueMicrotask(() => completed(why));
    } else if (this.waiting.length > 0 || this.free.length === 0) {
      this.waiting.push({ post, completed });
    } else this.begin({ post, completed });
  }

  /** A request has completed. @param error why it has failed */
  complete(cookie: number, error?: Error): void {
    const completed = this.slots[cookie];
    this.slots[cookie] = undefined;
    this.free.push(cookie);
    completed?.(error);
    while (this.ended === undefined && this.free.length > 0) {
      const next = this.waiting.shift();
      if (next === undefined) return;
      this.begin(next);
    }
  }

  /** None completes any more: the queue pair is gone. */
  end(why: Error): void {
    this.ended ??= why;
    for (const { completed } of this.waiting.splice(0)) completed(why);
    for (const [cookie, completed] of this.slots.entries()) {
      if (completed === undefined) continue;
      this.slots[cookie] = undefined;
      completed(why);
    }
  }

  private begin({ post, completed }: Waiting): void {
    const cookie = this.free.pop() as number;
    try {
      post(cookie);
      this.slots[cookie] = completed;
    } catch (error) {
      // The connection has ended; the event that says so comes.
      this.free.push(cookie);
      queueMicrotask(() => completed(error as Error));
    }
  }
}
