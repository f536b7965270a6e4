/**
 * Events of device and queue pairs, and which asynchronous error of DAT they are (DAT facts 3.4).
 */
import { type AsyncErrorEvent, AsyncErrorReason, DatEventNumber, type Evd } from '../evd/index.js';
import { AsyncEventType, nameOf } from '../spi/index.js';
import type { Ep } from './ep.js';
import type { UdEp } from './ep-ud.js';
import type { Ia } from './ia.js';

/** What ends the adapter, for all that it knows. */
const CATASTROPHIC: readonly number[] = [
  AsyncEventType.DEVICE_FATAL,
  AsyncEventType.PORT_ERR,
  AsyncEventType.LID_CHANGE,
  AsyncEventType.PKEY_CHANGE,
  AsyncEventType.SM_CHANGE,
];

/** What ends a connection without a failed request. */
const BREAKING: readonly number[] = [
  AsyncEventType.QP_FATAL,
  AsyncEventType.QP_REQ_ERR,
  AsyncEventType.QP_ACCESS_ERR,
];

const SENTENCES: Readonly<Record<number, string>> = {
  [AsyncEventType.QP_FATAL]: 'the queue pair failed',
  [AsyncEventType.QP_REQ_ERR]: 'the peer sent a request that breaks the protocol',
  [AsyncEventType.QP_ACCESS_ERR]: 'the peer reached for memory that it was not granted',
};

/** Why an event of a queue pair breaks its connection; undefined if it does not. */
export function breakReasonOf(event: AsyncEventType): string | undefined {
  return BREAKING.includes(event) ? SENTENCES[event] : undefined;
}

/** Puts an event of the device on the adapter's asynchronous EVD, or into the log. */
export function reportDeviceEvent(event: AsyncEventType, ia: Ia, asyncEvd: Evd): void {
  const name = nameOf(AsyncEventType, event);
  if (!CATASTROPHIC.includes(event)) {
    ia.context.logger.info(`device event ${name}`, { device: ia.context.device.name });
    return;
  }
  const fatal = event === AsyncEventType.DEVICE_FATAL;
  asyncEvd.post({
    type: 'async-error',
    number: DatEventNumber.ASYNC_IA_CATASTROPHIC,
    object: ia,
    reason: fatal ? AsyncErrorReason.IA.CATASTROPHIC : AsyncErrorReason.IA.OTHER,
    message: `device ${ia.context.device.name}: ${name}`,
  });
}

/** EP_BROKEN: the queue pair of an endpoint went to its error state by itself. */
export function epBrokenEvent(ep: Ep | UdEp, message: string): AsyncErrorEvent {
  return {
    type: 'async-error',
    number: DatEventNumber.ASYNC_EP_BROKEN,
    object: ep,
    reason: AsyncErrorReason.EP.TRANSFER_TO_ERROR,
    message,
  };
}
