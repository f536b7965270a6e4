/**
 * An event store that tells of each event that is taken. A class of its own, chosen where the EVD
 * is made: where nothing is traced, taking an event asks for nothing.
 */
import type { DatEvent } from '../events/event.js';
import type { EventBatch } from './event-batch.js';
import { type EventFields, eventFields, slotFields } from './event-fields.js';
import { EventStore } from './event-store.js';

export class TracedEventStore extends EventStore {
  constructor(
    private readonly trace: (fields: EventFields) => void,
    ...init: ConstructorParameters<typeof EventStore>
  ) {
    super(...init);
  }

  override take(): DatEvent | undefined {
    const event = super.take();
    if (event !== undefined) this.trace(eventFields(event));
    return event;
  }

  override takeBatch(batch: EventBatch, end: number): number {
    const count = super.takeBatch(batch, end);
    for (let slot = 0; slot < count; slot++) this.trace(slotFields(batch, slot));
    return count;
  }
}
