/** Handles events of device and queue pairs, by the table below. */
import { type AsyncErrorEvent, AsyncErrorReason, DatEventNumber } from '../../evd/index.js';
import { AsyncEventType, nameOf } from '../../spi/index.js';
import type { AdapterState } from './adapter-state.js';
import type { UdEp } from '../datagram/endpoint.js';
import type { Ep } from '../endpoint/ep.js';

// Events of device, queue pairs and queues → asynchronous errors of DAT: a table, after dapl's
// dapls_ib_get_async_event (dapl/openib_common/util.c). It differs from dapl in three ways: events
// that are no errors only go to the log; a queue pair's last receive and a shared queue's low
// watermark do not break an endpoint; and `reason` is filled in.

/** Without `reason` and `breaks` an event is no error of adapter or endpoint: it is only logged. */
export interface AsyncEventRow {
  /** For people. */
  readonly sentence: string;
  /** AsyncErrorReason.IA: the adapter has an error, ASYNC_IA_CATASTROPHIC. */
  readonly reason?: number;
  /** It breaks the endpoint: ASYNC_EP_BROKEN. */
  readonly breaks?: true;
}

const { CATASTROPHIC, OTHER } = AsyncErrorReason.IA;
type Name = keyof typeof AsyncEventType;
const breaks = true;

/** An EVD and a shared receive queue report their own events. */
export const ASYNC_EVENTS: Readonly<Record<Name, AsyncEventRow>> = {
  CQ_ERR: { sentence: 'the completion queue overran; its endpoints are broken' },
  QP_FATAL: { sentence: 'the queue pair failed', breaks },
  QP_REQ_ERR: { sentence: 'the peer sent a request that breaks the protocol', breaks },
  QP_ACCESS_ERR: { sentence: 'the peer reached for memory that it was not granted', breaks },
  COMM_EST: { sentence: 'data has arrived before the connection was established' },
  SQ_DRAINED: { sentence: 'the send queue is drained' },
  PATH_MIG: { sentence: 'the path has migrated' },
  PATH_MIG_ERR: { sentence: 'the path could not migrate' },
  DEVICE_FATAL: { sentence: 'the device is gone', reason: CATASTROPHIC },
  PORT_ACTIVE: { sentence: 'the port is active' },
  PORT_ERR: { sentence: 'the port is down', reason: OTHER },
  LID_CHANGE: { sentence: 'the local identifier has changed', reason: OTHER },
  PKEY_CHANGE: { sentence: 'the partition keys have changed', reason: OTHER },
  SM_CHANGE: { sentence: 'the subnet manager has changed', reason: OTHER },
  SRQ_ERR: { sentence: 'the shared receive queue failed' },
  SRQ_LIMIT_REACHED: { sentence: 'fewer receives are left than the low watermark' },
  QP_LAST_WQE_REACHED: { sentence: 'the last receive from the shared queue is done' },
  CLIENT_REREGISTER: { sentence: 'the subnet manager asks to register again' },
  GID_CHANGE: { sentence: 'the addresses of the port have changed' },
};

/** The row of an event; undefined for an unknown number. */
function asyncEventRow(event: AsyncEventType): AsyncEventRow | undefined {
  return ASYNC_EVENTS[nameOf(AsyncEventType, event) as Name];
}

/** Why an event of a queue pair breaks its connection; undefined if it does not. */
export function breakReasonOf(event: AsyncEventType): string | undefined {
  const row = asyncEventRow(event);
  return row?.breaks ? row.sentence : undefined;
}

/** Puts an event of the device on the adapter's asynchronous EVD, or into the log. */
export function reportDeviceEvent(event: AsyncEventType, core: AdapterState): void {
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

/** EP_BROKEN: the queue pair of an endpoint went to its error state without a failed request. */
export function epBrokenEvent(ep: Ep | UdEp, message: string): AsyncErrorEvent {
  return {
    type: 'async-error',
    number: DatEventNumber.ASYNC_EP_BROKEN,
    object: ep,
    reason: AsyncErrorReason.EP.TRANSFER_TO_ERROR,
    message,
  };
}

/** The reason that breaks endpoints whose event dispatcher has lost completions. */
export function lossReason(evd: number): string {
  return `the completion queue of event dispatcher ${evd} overran`;
}
