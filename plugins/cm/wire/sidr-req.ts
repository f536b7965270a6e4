/** SIDR_REQ, service id resolution request: the QPN of a datagram service (IBTA 12.11.1). */
import { cmCodec } from './cm-codec.js';
import { type MessageOf, padded, uint, uint64 } from './field-table.js';

export const sidrReqCodec = cmCodec('SIDR_REQ', {
  requestId: uint(0, 0, 32),
  partitionKey: uint(4, 0, 16),
  serviceId: uint64(8),
  /** 216 bytes; rdma_cm's header takes the first 36. */
  privateData: padded(16, 216),
});
export type CmSidrReq = MessageOf<typeof sidrReqCodec>;
