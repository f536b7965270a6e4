/** The events of an EVD as an Observable. */
import { Observable } from 'rxjs';
import type { DatEvent } from '../evd/event.js';
import type { EventSource } from '../evd/event-sink.js';

export type EventStream = Observable<DatEvent>;

/**
 * A cold Observable that takes the events while it is subscribed: one subscriber at a time, a
 * second one gets DAT_INVALID_STATE as its error. It never errors for what an event says.
 */
export function eventStream(source: EventSource): EventStream {
  return new Observable<DatEvent>((subscriber) => source.attachSink(subscriber));
}
