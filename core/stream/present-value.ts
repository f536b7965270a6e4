/** A changing value, as an Observable that begins with the present one. */
import type { Observable, Subscriber } from 'rxjs';
import type { Scheduler } from '../spi/index.js';
import { observable } from './event-stream.js';

/**
 * Subscribers get changes from the pump, never from inside the call that made them. Each gets every
 * value once, in order, the present one first.
 */
export class PresentValue<T> {
  /** Created for the first subscriber: most values have none. */
  private subscribers: Set<Subscriber<T>> | undefined = undefined;
  private completed = false;

  constructor(
    private value: T,
    private readonly scheduler: Scheduler,
    /** Called when the first subscriber comes, and when the last has left. */
    private readonly onWatched: (isWatched: boolean) => void = () => undefined,
  ) {}

  /** Any number of subscribers. */
  get stream$(): Observable<T> {
    return observable<T>((subscriber) => {
      subscriber.next(this.value);
      if (this.completed) {
        subscriber.complete();
        return undefined;
      }
      const subscribers = (this.subscribers ??= new Set());
      subscribers.add(subscriber);
      if (subscribers.size === 1) this.onWatched(true);
      return () => {
        if (subscribers.delete(subscriber) && subscribers.size === 0) this.onWatched(false);
      };
    });
  }

  set(value: T): void {
    this.value = value;
    this.tell((subscriber) => subscriber.next(value));
  }

  complete(): void {
    this.completed = true;
    this.tell((subscriber) => subscriber.complete());
  }

  private tell(what: (subscriber: Subscriber<T>) => void): void {
    const present = [...(this.subscribers ?? [])];
    if (present.length === 0) return;
    this.scheduler.defer(() => {
      for (const subscriber of present) what(subscriber);
    });
  }
}
