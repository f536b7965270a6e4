/** SIDR_REQ and SIDR_REP: the QPN of a datagram service by its service id (IBTA 12.11). */
import { cmCodec } from './cm-codec.js';
import { type MessageOf, padded, scattered, uint, uint64 } from './field-table.js';

export const sidrReqCodec = cmCodec('SIDR_REQ', {
  requestId: uint(0, 0, 32),
  partitionKey: uint(4, 0, 16),
  serviceId: uint64(8),
  /** 216 bytes; rdma_cm's header takes the first 36. */
  privateData: padded(16, 216),
});
export type CmSidrReq = MessageOf<typeof sidrReqCodec>;

export const SIDR_STATUS = {
  VALID_QPN: 0,
  SERVICE_ID_NOT_SUPPORTED: 1,
  REJECTED_BY_PROVIDER: 2,
  NO_QP_AVAILABLE: 3,
  REDIRECT: 4,
  UNSUPPORTED_VERSION: 5,
} as const;

export const SIDR_INFO_LENGTH = 72;

export const sidrRepCodec = cmCodec('SIDR_REP', {
  requestId: uint(0, 0, 32),
  /** `SIDR_STATUS`; the QPN, service id and Q_Key mean something only with 0. */
  status: uint(4, 0, 8),
  /** Bytes of `additionalInfo` that mean something, 0 to 72. */
  additionalInfoLength: uint(5, 0, 8, SIDR_INFO_LENGTH),
  /** Vendor id of enhanced connection establishment, 24 bits in two places. */
  vendorId: scattered(6, 7, 11),
  qpn: uint(8, 0, 24),
  serviceId: uint64(12),
  qkey: uint(20, 0, 32),
  /** 72 bytes. */
  additionalInfo: padded(24, SIDR_INFO_LENGTH),
  /** 136 bytes. */
  privateData: padded(96, 136),
});
export type CmSidrRep = MessageOf<typeof sidrRepCodec>;
