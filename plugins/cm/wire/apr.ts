/** APR, alternate path response (IBTA 12.8.2). Linux ignores it on RoCE. */
import { COMM_IDS, cmCodec } from './cm-codec.js';
import { type MessageOf, padded, uint } from './field-table.js';

export const AP_STATUS = {
  LOADED: 0,
  INVALID_COMM_ID: 1,
  UNSUPPORTED: 2,
  REJECTED: 3,
  REDIRECT: 4,
  IS_CURRENT: 5,
  INVALID_QPN: 6,
  INVALID_LID: 7,
  INVALID_GID: 8,
  INVALID_FLOW_LABEL: 9,
  INVALID_TRAFFIC_CLASS: 10,
  INVALID_HOP_LIMIT: 11,
  INVALID_PACKET_RATE: 12,
  INVALID_SL: 13,
} as const;

export const APR_INFO_LENGTH = 72;

export const aprCodec = cmCodec('APR', {
  ...COMM_IDS,
  /** Bytes of `additionalInfo` that mean something, 0 to 72. */
  additionalInfoLength: uint(8, 0, 8, APR_INFO_LENGTH),
  /** `AP_STATUS`. */
  apStatus: uint(9, 0, 8),
  /** 72 bytes. */
  additionalInfo: padded(12, APR_INFO_LENGTH),
  /** 148 bytes. */
  privateData: padded(84, 148),
});
export type CmApr = MessageOf<typeof aprCodec>;
