/** What all posting calls share. */
import { DatError } from '../../errors/index.js';
import type { EpRecord } from '../endpoint/record.js';

/** The queue looks full: perhaps completions wait to be taken in. */
export function makeRoom(record: EpRecord, operation: string, request: boolean): void {
  record.takeInCompletions();
  const { queues, attributes } = record;
  if (!(request ? queues.sends : queues.receives).full) return;
  const limit = request ? attributes.maxRequestDtos : attributes.maxRecvDtos;
  throw new DatError('DAT_INSUFFICIENT_RESOURCES', {
    subtype: 'DAT_RESOURCE_CREDITS',
    operation,
    message: `${limit} ${request ? 'requests' : 'receives'} are outstanding: the queue is full`,
    hint: 'wait for completions, or ask for more in the endpoint attributes',
    value: limit,
  });
}

/** For the trace, which is written before parameters are checked. */
export function countOf(segments: unknown): number {
  return Array.isArray(segments) ? segments.length : 1;
}
