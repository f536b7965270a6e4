/** SIDR_REQ, service id resolution request: the QPN of a datagram service (IBTA 12.11.1). */
import { CM_MESSAGE_LENGTH } from './attribute-id.js';
import { padded, uint, uint64, wireCodec } from './field-table.js';
import type { Layout } from './field-table.js';

export interface CmSidrReq {
  readonly requestId: number;
  readonly partitionKey: number;
  readonly serviceId: bigint;
  /** 216 bytes; rdma_cm's header takes the first 36. */
  readonly privateData: Uint8Array;
}

const layout: Layout<CmSidrReq> = {
  requestId: uint(0, 0, 32),
  partitionKey: uint(4, 0, 16),
  serviceId: uint64(8),
  privateData: padded(16, 216),
};

export const sidrReqCodec = wireCodec<CmSidrReq>('SIDR_REQ', CM_MESSAGE_LENGTH, layout);
