/**
 * What `ep.modify` may change, field by field (DAT facts 2.2): the column of the state table that
 * decides when, or `never`; and whether the queue pair has to be made anew.
 */
import type { EpAttributes } from './attributes.js';
import type { EpCall } from './states.js';

/** When a field may be changed. */
export type Modifiable = Extract<EpCall, `modify${string}`> | 'never';

interface FieldRule {
  readonly when: Modifiable;
  /** The queue pair is made of it. */
  readonly rebuilds: boolean;
}

const inQueuePair = { when: 'modifyAttributes', rebuilds: true } as const;
const ours = { when: 'modifyAttributes', rebuilds: false } as const;
const never = { when: 'never', rebuilds: false } as const;

/** Fields of `ep.query()`. `attributes` are in a table of their own. */
export const EP_FIELDS = {
  pz: { when: 'modifyPz', rebuilds: true },
  recvEvd: inQueuePair,
  requestEvd: inQueuePair,
  connectEvd: ours,
  ia: never,
  state: never,
  stateNumber: never,
  /** An endpoint made with a shared receive queue is never separated from it. */
  srq: never,
  localAddress: never,
  remoteAddress: never,
  remoteConnQual: never,
  softWatermark: never,
  hardWatermark: never,
  qpn: never,
} as const satisfies Readonly<Record<string, FieldRule>>;

export const EP_ATTRIBUTE_FIELDS: Readonly<Record<keyof EpAttributes, FieldRule>> = {
  serviceType: never,
  maxMessageBytes: ours,
  maxRdmaBytes: ours,
  qos: ours,
  recvCompletionFlags: ours,
  requestCompletionFlags: ours,
  maxRecvDtos: inQueuePair,
  maxRequestDtos: inQueuePair,
  maxRecvIov: inQueuePair,
  maxRequestIov: inQueuePair,
  maxRdmaReadIov: inQueuePair,
  maxRdmaWriteIov: inQueuePair,
  maxRdmaReadIn: ours,
  maxRdmaReadOut: ours,
  srqSoftHighWatermark: ours,
  keepAliveMs: inQueuePair,
  transport: { when: 'modifyTransport', rebuilds: false },
};
