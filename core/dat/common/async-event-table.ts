/**
 * Events of device, queue pairs and queues → asynchronous errors of DAT: a table (DAT facts 3.4).
 * Where we leave dapl: what is no error only goes to the log, a queue pair's last receive and a
 * shared queue's low watermark are not called broken endpoints, and `reason` is filled in.
 */
import type { AsyncErrorNumber } from '../../evd/index.js';
import { AsyncErrorReason, DatEventNumber } from '../../evd/index.js';
import { AsyncEventType, nameOf } from '../../spi/index.js';

export interface AsyncEventRow {
  /** What DAT's event names. */
  readonly object: 'IA' | 'EP' | 'EVD' | 'SRQ';
  /** Absent: no error, a line in the log. */
  readonly number?: AsyncErrorNumber;
  readonly reason?: number;
  /** For people. */
  readonly sentence: string;
}

const {
  ASYNC_EVD_OVERFLOW,
  ASYNC_IA_CATASTROPHIC,
  ASYNC_EP_BROKEN,
  ASYNC_PROVIDER_INTERNAL_ERROR,
} = DatEventNumber;
const { EP, EVD, IA, SRQ } = AsyncErrorReason;

type Name = keyof typeof AsyncEventType;
const adapter = (reason: number, sentence: string): AsyncEventRow => ({
  object: 'IA',
  number: ASYNC_IA_CATASTROPHIC,
  reason,
  sentence,
});
const endpoint = (sentence: string): AsyncEventRow => ({
  object: 'EP',
  number: ASYNC_EP_BROKEN,
  reason: EP.TRANSFER_TO_ERROR,
  sentence,
});
const queue = (reason: number, sentence: string): AsyncEventRow => ({
  object: 'SRQ',
  number: ASYNC_PROVIDER_INTERNAL_ERROR,
  reason,
  sentence,
});
const logged = (object: AsyncEventRow['object'], sentence: string): AsyncEventRow => ({
  object,
  sentence,
});

export const ASYNC_EVENTS: Readonly<Record<Name, AsyncEventRow>> = {
  CQ_ERR: {
    object: 'EVD',
    number: ASYNC_EVD_OVERFLOW,
    reason: EVD.OVERFLOW,
    sentence: 'the completion queue overran; its endpoints are broken',
  },
  QP_FATAL: endpoint('the queue pair failed'),
  QP_REQ_ERR: endpoint('the peer sent a request that breaks the protocol'),
  QP_ACCESS_ERR: endpoint('the peer reached for memory that it was not granted'),
  COMM_EST: logged('EP', 'data has arrived before the connection was established'),
  SQ_DRAINED: logged('EP', 'the send queue is drained'),
  PATH_MIG: logged('EP', 'the path has migrated'),
  PATH_MIG_ERR: logged('EP', 'the path could not migrate'),
  DEVICE_FATAL: adapter(IA.CATASTROPHIC, 'the device is gone'),
  PORT_ACTIVE: logged('IA', 'the port is active'),
  PORT_ERR: adapter(IA.OTHER, 'the port is down'),
  LID_CHANGE: adapter(IA.OTHER, 'the local identifier has changed'),
  PKEY_CHANGE: adapter(IA.OTHER, 'the partition keys have changed'),
  SM_CHANGE: adapter(IA.OTHER, 'the subnet manager has changed'),
  SRQ_ERR: queue(SRQ.TRANSFER_TO_ERROR, 'the shared receive queue failed'),
  SRQ_LIMIT_REACHED: queue(SRQ.LOW_WATERMARK, 'fewer receives are left than the low watermark'),
  QP_LAST_WQE_REACHED: logged('EP', 'the last receive from the shared queue is done'),
  CLIENT_REREGISTER: logged('IA', 'the subnet manager asks to register again'),
  GID_CHANGE: logged('IA', 'the addresses of the port have changed'),
};

/** The row of an event; undefined for an unknown number. */
export function asyncEventRow(event: AsyncEventType): AsyncEventRow | undefined {
  return ASYNC_EVENTS[nameOf(AsyncEventType, event) as Name];
}
