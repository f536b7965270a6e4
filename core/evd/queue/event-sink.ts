/** Push consumption without a stream library: core/stream wraps it as an Observable. */
import type { DatEvent } from '../events/event.js';

export interface EventSink<T = DatEvent> {
  /** One event; called from the pump, never from inside a call of the consumer. */
  next(event: T): void;
  /** The EVD (or CNO) has been freed. */
  complete(): void;
}

/** Something that a sink can be attached to, one at a time. */
export interface EventSource<T = DatEvent> {
  /**
   * @returns a function that detaches the sink; queued events stay
   * @throws DatError DAT_INVALID_STATE while something else takes the events
   */
  attachSink(sink: EventSink<T>): () => void;
}
