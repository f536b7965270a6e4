/** A bounded queue of values for one subscriber. */
import type { Subscriber } from 'rxjs';
import { DatError } from '../errors/index.js';
import type { Scheduler } from '../spi/index.js';
import { observable } from './event-stream.js';

/**
 * Values wait while there is no subscriber: before the first, or after one has left. Subscribers
 * are called from the pump, never from inside the call that subscribes.
 */
export class Inbox<T> {
  private readonly waiting: T[] = [];
  private subscriber: Subscriber<T> | undefined;
  private completed = false;
  private scheduled = false;

  /**
   * @param name of the stream, for messages
   * @param limit how many may wait
   */
  constructor(
    private readonly name: string,
    private readonly limit: number,
    private readonly scheduler: Scheduler,
  ) {}

  /** One subscriber; a second gets DAT_INVALID_STATE as its error. */
  readonly stream$ = observable<T>((subscriber) => {
    if (this.subscriber !== undefined) {
      subscriber.error(
        new DatError('DAT_INVALID_STATE', {
          operation: this.name,
          message: 'it has a subscriber already',
          hint: 'use share()',
        }),
      );
      return undefined;
    }
    if (this.completed) {
      subscriber.complete();
      return undefined;
    }
    this.subscriber = subscriber;
    this.drainSoon();
    return () => {
      if (this.subscriber === subscriber) this.subscriber = undefined;
    };
  });

  /** Called from the pump. False when there is no room: the value is dropped. */
  push(item: T): boolean {
    if (this.completed || this.waiting.length >= this.limit) return false;
    this.waiting.push(item);
    if (!this.scheduled) this.drainNow();
    return true;
  }

  /** Ends the stream; drops queued values. Not from inside a call of the consumer's. */
  complete(): void {
    this.completed = true;
    this.waiting.length = 0;
    this.subscriber?.complete();
  }

  private drainSoon(): void {
    if (this.scheduled) return;
    this.scheduled = true;
    this.scheduler.defer(() => {
      this.scheduled = false;
      this.drainNow();
    });
  }

  /** Delivers as long as handlers have time in this turn. */
  private drainNow(): void {
    while (this.subscriber !== undefined && this.waiting.length > 0) {
      if (!this.scheduler.mayStart()) {
        this.drainSoon();
        return;
      }
      this.subscriber.next(this.waiting.shift()!);
    }
  }
}
