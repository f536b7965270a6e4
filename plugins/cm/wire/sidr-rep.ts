/** SIDR_REP, service id resolution response (IBTA 12.11.2). */
import { CM_MESSAGE_LENGTH } from './attribute-id.js';
import { padded, scattered, uint, uint64, wireCodec } from './field-table.js';
import type { Layout } from './field-table.js';

export const SIDR_STATUS = {
  VALID_QPN: 0,
  SERVICE_ID_NOT_SUPPORTED: 1,
  REJECTED_BY_PROVIDER: 2,
  NO_QP_AVAILABLE: 3,
  REDIRECT: 4,
  UNSUPPORTED_VERSION: 5,
} as const;

export const SIDR_INFO_LENGTH = 72;

export interface CmSidrRep {
  readonly requestId: number;
  /** `SIDR_STATUS`; the QPN, service id and Q_Key mean something only with 0. */
  readonly status: number;
  /** Bytes of `additionalInfo` that mean something, 0 to 72. */
  readonly additionalInfoLength: number;
  /** Vendor id of enhanced connection establishment, 24 bits in two places. */
  readonly vendorId: number;
  readonly qpn: number;
  readonly serviceId: bigint;
  readonly qkey: number;
  /** 72 bytes. */
  readonly additionalInfo: Uint8Array;
  /** 136 bytes. */
  readonly privateData: Uint8Array;
}

const layout: Layout<CmSidrRep> = {
  requestId: uint(0, 0, 32),
  status: uint(4, 0, 8),
  additionalInfoLength: uint(5, 0, 8, SIDR_INFO_LENGTH),
  vendorId: scattered(6, 7, 11),
  qpn: uint(8, 0, 24),
  serviceId: uint64(12),
  qkey: uint(20, 0, 32),
  additionalInfo: padded(24, SIDR_INFO_LENGTH),
  privateData: padded(96, 136),
};

export const sidrRepCodec = wireCodec<CmSidrRep>('SIDR_REP', CM_MESSAGE_LENGTH, layout);
