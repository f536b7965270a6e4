/** What the trace says of events: each kind, as an object and in a batch. */
import assert from 'node:assert/strict';
import {
  AsyncErrorReason,
  DatDto,
  DatDtoStatus,
  type DatEvent,
  DatEventNumber,
  EventBatch,
} from '../../../core/index.js';
import { eventFields, slotFields } from '../../../core/evd/queue/traced-store.js';

const object = (id: number): never => ({ id }) as never;
const ep = object(3);

/** Of a transfer of 9 bytes. */
const transfer = {
  cookie: 5,
  status: DatDtoStatus.SUCCESS,
  transferredLength: 9,
  operation: DatDto.RECEIVE,
} as const;
const TRANSFER = { operation: 'RECEIVE', cookie: 5, status: 'SUCCESS', bytes: 9 };

const ROWS: readonly (readonly [DatEvent, Readonly<Record<string, unknown>>])[] = [
  [
    { type: 'dto', number: DatEventNumber.DTO_COMPLETION, ep, ...transfer },
    { number: 'DTO_COMPLETION', ep: 3, ...TRANSFER },
  ],
  [
    { type: 'datagram', number: DatEventNumber.IB_DTO, ep, ...transfer },
    { number: 'IB_DTO', ep: 3, ...TRANSFER },
  ],
  [
    {
      ...{ type: 'xrc-receive', number: DatEventNumber.XRC_RECEIVE, srq: object(4) },
      ...{ targetQpn: 17, ...transfer },
    },
    { number: 'XRC_RECEIVE', srq: 4, targetQpn: 17, ...TRANSFER },
  ],
  [
    {
      ...{ type: 'rmr-bind', number: DatEventNumber.RMR_BIND_COMPLETION, rmr: object(6), ep },
      ...{ cookie: 7, status: DatDtoStatus.FLUSHED },
    },
    { number: 'RMR_BIND_COMPLETION', rmr: 6, ep: 3, cookie: 7, status: 'FLUSHED' },
  ],
  [
    {
      ...{ type: 'connection-request', number: DatEventNumber.CONNECTION_REQUEST },
      ...{ sp: object(8), cr: object(9), connQual: 7000, truncated: false },
    },
    { number: 'CONNECTION_REQUEST', sp: 8, cr: 9, connQual: 7000 },
  ],
  [
    {
      ...{ type: 'connection', number: DatEventNumber.BROKEN, ep, privateData: new Uint8Array(0) },
      ...{ cause: 'PEER_GONE', reason: 'silence' },
    },
    { number: 'BROKEN', ep: 3, cause: 'PEER_GONE', reason: 'silence' },
  ],
  [
    {
      ...{ type: 'async-error', number: DatEventNumber.ASYNC_EP_BROKEN, object: ep },
      ...{ reason: AsyncErrorReason.EP.OTHER, message: 'why' },
    },
    { number: 'ASYNC_EP_BROKEN', object: 3, message: 'why' },
  ],
  [
    {
      ...{ type: 'xrc-target', number: DatEventNumber.XRC_TARGET, domain: object(2) },
      ...{ targetQpn: 17, event: 'ESTABLISHED' },
    },
    { number: 'XRC_TARGET', domain: 2, targetQpn: 17, event: 'ESTABLISHED' },
  ],
  [
    { type: 'software', number: DatEventNumber.SOFTWARE, payload: 'mine' },
    { number: 'SOFTWARE', payload: 'mine' },
  ],
];

describe('the fields of an event in a trace', () => {
  for (const [event, fields] of ROWS) {
    it(`are those of its kind: ${event.type}`, () => {
      assert.deepEqual(eventFields(event), fields);
      const batch = new EventBatch(2);
      batch.setTaken(1, event);
      assert.deepEqual(slotFields(batch, 1), fields);
    });
  }
});
