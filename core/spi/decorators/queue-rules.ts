/** Which completions may follow which requests, in one queue of a queue pair. */
import { nameOf, WcStatus } from '../wire/ib.js';
import type { ObservedCompletion, PostedRequest } from './entries.js';
import type { Report } from './breaches.js';

export class QueueRules {
  /** Handed over and not completed, oldest first. */
  private outstanding: PostedRequest[] = [];
  /** Completions of requests before this index are old: the queue pair was reset since. */
  private floor = 0;
  /** Signalled ones behind which another has completed. */
  private passedOver = new Set<number>();
  private failed = false;

  /**
   * @param what `send queue of queue pair 17`
   * @param mayLose whether the completion queue has said that it lost some
   */
  constructor(
    private readonly what: string,
    private readonly report: Report,
    private readonly mayLose: () => boolean,
  ) {}

  posted(request: PostedRequest): void {
    this.outstanding.push(request);
  }

  /** RESET discards what was outstanding. */
  reset(producer: number): void {
    this.ended();
    this.outstanding = [];
    this.passedOver = new Set();
    this.floor = producer;
    this.failed = false;
  }

  /** A send queue that had stopped goes on. */
  resumed(): void {
    this.failed = false;
  }

  completed(completion: ObservedCompletion): void {
    const { index, status } = completion;
    const { what } = this;
    const at = this.outstanding.findIndex((request) => request.index === index);
    const request = this.outstanding[at];
    if (request === undefined) {
      // An old one of before a reset.
      if (((index - this.floor) | 0) < 0 || this.passedOver.delete(index)) return;
      this.report('completion-unknown', `${what}: entry ${index} is not outstanding`);
      return;
    }
    this.passOver(this.outstanding.slice(0, at), completion);
    this.outstanding.splice(0, at + 1);
    this.compare(request, completion);
    const isSuccess = status === WcStatus.SUCCESS;
    if (isSuccess && this.failed) {
      this.report('success-after-failure', `${what}: entry ${index} succeeded behind a failed one`);
    }
    if (!isSuccess) this.failed = true;
  }

  /** The queue has come to an end: what was passed over never completed. */
  ended(): void {
    const [missed] = this.passedOver;
    if (missed === undefined || this.mayLose()) return;
    const count = `${this.passedOver.size} in all`;
    this.report('completion-lost', `${this.what}: entry ${missed} never completed (${count})`);
  }

  /** Earlier requests ought to be done. */
  private passOver(earlier: readonly PostedRequest[], { index, status }: ObservedCompletion): void {
    const missed = earlier.filter(({ signalled }) => signalled);
    const [first] = missed;
    if (first === undefined || this.mayLose()) return;
    for (const each of missed) this.passedOver.add(each.index);
    const seen = `entry ${index} completed (${nameOf(WcStatus, status)})`;
    this.report('completion-order', `${this.what}: ${seen} before entry ${first.index}`);
  }

  private compare(request: PostedRequest, completion: ObservedCompletion): void {
    const { what } = this;
    const { index, cookie, status } = completion;
    if (cookie !== request.cookie) {
      const seen = `${what}: entry ${index} has cookie ${cookie}, was posted with`;
      this.report('completion-cookie', `${seen} ${request.cookie}`);
    }
    if (!request.signalled && status === WcStatus.SUCCESS) {
      this.report('completion-unsignalled', `${what}: entry ${index} succeeded unsignalled`);
    }
  }
}

/** Of a shared receive queue: slots complete in any order. */
export class SlotRules {
  private readonly outstanding = new Map<number, PostedRequest>();

  constructor(
    private readonly what: string,
    private readonly report: Report,
  ) {}

  posted(request: PostedRequest): void {
    this.outstanding.set(request.index, request);
  }

  completed({ index, cookie }: ObservedCompletion): void {
    const request = this.outstanding.get(index);
    if (request === undefined) {
      this.report('completion-unknown', `${this.what}: slot ${index} is not outstanding`);
      return;
    }
    this.outstanding.delete(index);
    if (cookie === request.cookie) return;
    const seen = `${this.what}: slot ${index} has cookie ${cookie}, was posted with`;
    this.report('completion-cookie', `${seen} ${request.cookie}`);
  }
}
