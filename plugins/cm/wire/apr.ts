/** APR, alternate path response (IBTA 12.8.2). Linux ignores it on RoCE. */
import { CM_MESSAGE_LENGTH } from './attribute-id.js';
import { padded, uint, wireCodec } from './field-table.js';
import type { Layout } from './field-table.js';

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

export interface CmApr {
  readonly localCommId: number;
  readonly remoteCommId: number;
  /** Bytes of `additionalInfo` that mean something, 0 to 72. */
  readonly additionalInfoLength: number;
  /** `AP_STATUS`. */
  readonly apStatus: number;
  /** 72 bytes. */
  readonly additionalInfo: Uint8Array;
  /** 148 bytes. */
  readonly privateData: Uint8Array;
}

const layout: Layout<CmApr> = {
  localCommId: uint(0, 0, 32),
  remoteCommId: uint(4, 0, 32),
  additionalInfoLength: uint(8, 0, 8, APR_INFO_LENGTH),
  apStatus: uint(9, 0, 8),
  additionalInfo: padded(12, APR_INFO_LENGTH),
  privateData: padded(84, 148),
};

export const aprCodec = wireCodec<CmApr>('APR', CM_MESSAGE_LENGTH, layout);
