/**
 * An event store that traces each event taken. It is a class of its own, chosen when the EVD is
 * created, so that an EVD without tracing pays nothing for it.
 */
import { nameOf } from '../../spi/index.js';
import { DatDto, DatDtoStatus } from '../events/dto-status.js';
import { type DatEvent, DatEventNumber } from '../events/event.js';
import type { EventBatch } from './event-batch.js';
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

/** Fields of events and completions in a trace, by name. */
type EventFields = Readonly<Record<string, unknown>>;

export function eventFields(event: DatEvent): EventFields {
  return { number: nameOf(DatEventNumber, event.number), ...ownFields(event) };
}

function ownFields(event: DatEvent): EventFields {
  switch (event.type) {
    case 'dto':
    case 'datagram':
      return { ep: event.ep.id, ...transferFields(event) };
    case 'xrc-receive':
      return { srq: event.srq.id, targetQpn: event.targetQpn, ...transferFields(event) };
    case 'rmr-bind':
      return { rmr: event.rmr.id, ep: event.ep.id, cookie: event.cookie, ...statusField(event) };
    case 'connection-request':
      return { sp: event.sp.id, cr: event.cr.id, connQual: event.connQual };
    case 'connection':
      return { ep: event.ep.id, cause: event.cause, reason: event.reason };
    case 'async-error':
      return { object: event.object.id, message: event.message };
    case 'xrc-target':
      return { domain: event.domain.id, targetQpn: event.targetQpn, event: event.event };
    case 'software':
      return { payload: event.payload };
  }
}

interface Transfer {
  readonly operation: number;
  readonly cookie: number;
  readonly status: number;
  readonly transferredLength: number;
}

function transferFields({ operation, cookie, status, transferredLength }: Transfer): EventFields {
  const what = { operation: nameOf(DatDto, operation), cookie };
  return { ...what, ...statusField({ status }), bytes: transferredLength };
}

function statusField({ status }: { readonly status: number }): EventFields {
  return { status: nameOf(DatDtoStatus, status) };
}

/** As above for an event taken into a batch, where completions are numbers. */
export function slotFields(batch: EventBatch, slot: number): EventFields {
  const event = batch.events[slot];
  if (event !== undefined) return eventFields(event);
  return {
    number: nameOf(DatEventNumber, batch.numbers[slot] ?? 0),
    ep: batch.eps[slot]?.id,
    ...transferFields({
      operation: batch.operations[slot] ?? 0,
      cookie: batch.cookies[slot] ?? 0,
      status: batch.statuses[slot] ?? 0,
      transferredLength: batch.lengths[slot] ?? 0,
    }),
  };
}
