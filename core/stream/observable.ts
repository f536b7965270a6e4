/** `Observable` of rxjs without the rest: all of rxjs takes 100 ms of CPU to load. */
import type { Observable, Subscriber, TeardownLogic } from 'rxjs';
import { Observable as Loaded } from 'rxjs/internal/Observable';

/** @param subscribe as that of `new Observable` */
export function observable<T>(
  subscribe: (subscriber: Subscriber<T>) => TeardownLogic,
): Observable<T> {
  return new Loaded<T>(subscribe);
}
