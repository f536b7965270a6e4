/** What posting a datagram refuses. */
import { DatError } from '../../errors/index.js';
import { GRH_LENGTH } from '../../spi/index.js';
import { invalid } from '../../errors/guards.js';
import type { LmrSegment } from '../memory/segment.js';

export function fullError(operation: string, what: string, limit: number): DatError {
  return new DatError('DAT_INSUFFICIENT_RESOURCES', {
    subtype: 'DAT_RESOURCE_CREDITS',
    operation,
    message: `${limit} ${what} are outstanding: the queue is full`,
    hint: 'wait for completions, or ask for more in the endpoint attributes',
    value: limit,
  });
}

export function shortError(first: LmrSegment | undefined): DatError {
  if (first === undefined) {
    return invalid('ep.postRecv', 1, 'the number of segments', 0, 'at least 1');
  }
  return new DatError('DAT_LENGTH_ERROR', {
    operation: 'ep.postRecv',
    message: `the first segment has ${first.lengthBytes} bytes; the GRH area takes ${GRH_LENGTH}`,
    hint: 'datagrams come behind a GRH area of 40 bytes',
    value: first.lengthBytes,
  });
}
