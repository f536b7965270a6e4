/** The events of an EVD, and the notifications of a CNO, as Observables. */
import type { Observable } from 'rxjs';
import type { DatEvent } from '../evd/events/event.js';
import type { EventNotifier } from '../evd/events/event-objects.js';
import type { EventSource } from '../evd/queue/event-sink.js';
import { observable } from './observable.js';

export type EventStream = Observable<DatEvent>;
/** The EVD is a hint: see `Cno.wait`. */
export type NotificationStream = Observable<EventNotifier | undefined>;

/**
 * A cold Observable that takes the events while it is subscribed: one subscriber at a time, a
 * second one gets DAT_INVALID_STATE as its error. It never errors for what an event says.
 */
export function eventStream<T = DatEvent>(source: EventSource<T>): Observable<T> {
  return observable<T>((subscriber) => source.attachSink(subscriber));
}
