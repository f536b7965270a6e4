/** What becomes of events of device and queue pairs, by the table of async-event-table.ts. */
import {
  type AsyncErrorEvent,
  AsyncErrorReason,
  DatEventNumber,
  type EventDatagramEndpoint,
  type EventEndpoint,
} from '../../evd/index.js';
import { AsyncEventType, nameOf } from '../../spi/index.js';
import { asyncEventRow } from './async-event-table.js';
import type { IaCore } from './adapter-state.js';

/** Why an event of a queue pair breaks its connection; undefined if it does not. */
export function breakReasonOf(event: AsyncEventType): string | undefined {
  const row = asyncEventRow(event);
  return row?.breaks ? row.sentence : undefined;
}

/** Puts an event of the device on the adapter's asynchronous EVD, or into the log. */
export function reportDeviceEvent(event: AsyncEventType, core: IaCore): void {
  const row = asyncEventRow(event);
  const { name } = core.context.device;
  const text = `device ${name}: ${nameOf(AsyncEventType, event)}, ${row?.sentence ?? 'unknown'}`;
  const reason = row?.reason;
  if (reason === undefined) {
    core.context.logger.info(text, { device: name });
    return;
  }
  const number = DatEventNumber.ASYNC_IA_CATASTROPHIC;
  core.reportAsync({ type: 'async-error', number, object: core.ia, reason, message: text });
}

/** EP_BROKEN: the queue pair of an endpoint went to its error state by itself. */
export function epBrokenEvent(
  ep: EventEndpoint | EventDatagramEndpoint,
  message: string,
): AsyncErrorEvent {
  return {
    type: 'async-error',
    number: DatEventNumber.ASYNC_EP_BROKEN,
    object: ep,
    reason: AsyncErrorReason.EP.TRANSFER_TO_ERROR,
    message,
  };
}

/** What breaks the endpoints of an event dispatcher whose completions have been lost. */
export function lossReason(evd: number): string {
  return `the completion queue of event dispatcher ${evd} overran`;
}
