/**
 * Posts requests and waits for them by cookie: a promise for each. A wait that ends early leaves.
 * Its slot, and the memory of its request, are freed when the request completes.
 */
import { assert, checkValue, integer } from '../spi/checks/index.js';
import { refusalOf, toFlowError } from './flow-error.js';
import {
  type EndError,
  NO_OPTIONS,
  Wait,
  type WaitHost,
  type WaitOptions,
  type WaitOwner,
} from './wait.js';

/** Resources that a posted request holds until it has completed: above all, memory. */
export interface Held {
  /**
   * Called once.
   * @param isWanted it has succeeded, and its promise has not ended before
   */
  release(isWanted: boolean): void;
}

/** Posts a request under a cookie. An error that it throws rejects the promise. */
export type Post = (cookie: number) => Held | undefined;

/** A request that waits for a slot. */
interface Queued<T> {
  readonly wait: Wait<T>;
  readonly post: Post;
}

const QUEUED = -2;
const LEFT = -1;

/** The requests of one queue, by cookie: 0 to `limit` - 1. */
export class Requests<T> implements WaitOwner<T> {
  private readonly waiting: (Wait<T> | undefined)[];
  private readonly held: (Held | undefined)[];
  private readonly isPosted: boolean[];
  private readonly freeCookies: number[];
  private readonly queue: Queued<T>[] = [];
  private ended: EndError | undefined = undefined;

  /**
   * @param limit requests posted at a time, 1 to 2^20; more wait for a slot, in order
   * @throws FlowError DAT_INVALID_PARAMETER
   */
  constructor(
    private readonly host: WaitHost,
    readonly limit: number,
  ) {
    checkValue('limit', limit, integer(1, 2 ** 20), refusalOf('Requests'));
    this.waiting = new Array<Wait<T> | undefined>(limit).fill(undefined);
    this.held = new Array<Held | undefined>(limit).fill(undefined);
    this.isPosted = new Array<boolean>(limit).fill(false);
    this.freeCookies = Array.from({ length: limit }, (_, i) => limit - 1 - i);
  }

  /** Requests posted that have not completed. */
  get posted(): number {
    return this.limit - this.freeCookies.length;
  }

  /** Requests that wait for a slot. */
  get queued(): number {
    return this.queue.length;
  }

  /**
   * Posts a request when there is a slot for it, in the order of the calls.
   * @param operation the call that errors name
   * @param options checked by `checkWait`
   * @returns what `complete` is given
   */
  post(operation: string, post: Post, options: WaitOptions = NO_OPTIONS): Promise<T> {
    const wait = new Wait<T>(this, operation);
    if (this.ended !== undefined) {
      wait.reject(this.ended(operation));
      return wait.promise;
    }
    wait.limit(this.host, options);
    if (this.queue.length > 0 || this.freeCookies.length === 0) {
      wait.place = QUEUED;
      this.queue.push({ wait, post });
    } else this.begin(wait, post);
    return wait.promise;
  }

  /**
   * @internal the cookie for a request to be posted now; undefined if it has to be queued, or
   * nothing is posted any more: `post` handles both
   */
  get nextCookie(): number | undefined {
    if (this.ended !== undefined || this.queue.length > 0) return undefined;
    return this.freeCookies[this.freeCookies.length - 1];
  }

  /**
   * @internal a request has been posted under `nextCookie`: as `post`, without a function for it
   * @param options checked by `checkWait`
   */
  track(operation: string, held: Held | undefined, options: WaitOptions): Promise<T> {
    const wait = new Wait<T>(this, operation);
    this.note(wait, this.freeCookies.pop() as number, held);
    return wait.limit(this.host, options).promise;
  }

  /**
   * The request has succeeded. Requests that wait for a slot may be posted before this returns.
   * @throws InvariantError for a cookie that is not posted
   */
  complete(cookie: number, value: T): void {
    const wait = this.giveBack(cookie, true);
    wait?.resolve(value);
    this.next();
  }

  /** The request has failed. */
  fail(cookie: number, error: Error): void {
    const wait = this.giveBack(cookie, false);
    wait?.reject(error);
    this.next();
  }

  /**
   * Ends all requests: the queue pair is destroyed and no longer uses any memory. All promises end
   * with this error, and so do later ones.
   */
  end(errorOf: EndError): void {
    this.ended ??= errorOf;
    this.endQueued(errorOf);
    for (let cookie = 0; cookie < this.limit; cookie++) {
      if (!this.isPosted[cookie]) continue;
      const wait = this.giveBack(cookie, false);
      wait?.reject(errorOf(wait.operation));
    }
  }

  leave(wait: Wait<T>): void {
    if (wait.place === QUEUED) {
      const at = this.queue.findIndex((queued) => queued.wait === wait);
      assert(at >= 0, 'a wait without a slot is in the queue', wait);
      this.queue.splice(at, 1);
    } else this.waiting[wait.place] = undefined;
    wait.place = LEFT;
  }

  explain(wait: Wait<T>): string {
    return wait.place === QUEUED
      ? 'it has not been posted, and has no effect'
      : 'it has been posted, and may take effect';
  }

  private endQueued(errorOf: EndError): void {
    for (const { wait } of this.queue.splice(0)) wait.reject(errorOf(wait.operation));
  }

  private begin(wait: Wait<T>, post: Post): void {
    const cookie = this.freeCookies.pop() as number;
    let held: Held | undefined;
    try {
      held = post(cookie);
    } catch (error) {
      this.freeCookies.push(cookie);
      wait.reject(toFlowError(wait.operation, error));
      return;
    }
    this.note(wait, cookie, held);
  }

  private note(wait: Wait<T>, cookie: number, held: Held | undefined): void {
    wait.place = cookie;
    this.waiting[cookie] = wait;
    this.held[cookie] = held;
    this.isPosted[cookie] = true;
  }

  private giveBack(cookie: number, succeeded: boolean): Wait<T> | undefined {
    assert(this.isPosted[cookie] === true, 'a request that completes has been posted', cookie);
    const wait = this.waiting[cookie];
    const held = this.held[cookie];
    this.waiting[cookie] = undefined;
    this.held[cookie] = undefined;
    this.isPosted[cookie] = false;
    this.freeCookies.push(cookie);
    held?.release(succeeded && wait !== undefined);
    return wait;
  }

  private next(): void {
    while (this.queue.length > 0 && this.freeCookies.length > 0) {
      const queued = this.queue.shift() as Queued<T>;
      this.begin(queued.wait, queued.post);
    }
  }
}
