/** The events of an EVD, and the notifications of a CNO, as Observables. */
import type { Observable, Subscriber, TeardownLogic } from 'rxjs';
import { Observable as Loaded } from 'rxjs/internal/Observable';
import type { DatEvent } from '../evd/events/event.js';
import type { EventSource } from '../evd/queue/event-sink.js';
import type { Evd } from '../evd/evd.js';

/**
 * An Observable of rxjs without the rest, all of which takes 100 ms of CPU to load.
 * @param subscribe as that of `new Observable`
 */
export function observable<T>(
  subscribe: (subscriber: Subscriber<T>) => TeardownLogic,
): Observable<T> {
  return new Loaded<T>(subscribe);
}

export type EventStream = Observable<DatEvent>;
/** The EVD is a hint: see `Cno.wait`. */
export type NotificationStream = Observable<Evd | undefined>;

/**
 * A cold Observable that takes the events while it is subscribed: one subscriber at a time, a
 * second one gets DAT_INVALID_STATE as its error. It never errors for what an event says.
 */
export function eventStream<T = DatEvent>(source: EventSource<T>): Observable<T> {
  return observable<T>((subscriber) => source.attachSink(subscriber));
}
