/**
 * LAP, load alternate path, and APR, its response (IBTA 12.8.1, 12.8.2). Linux ignores both on
 * RoCE.
 */
import { cmCodec, COMM_IDS, NO_DATA } from './cm-codec.js';
import { bytes, type MessageOf, padded, uint } from './field-table.js';

export const lapCodec = cmCodec('LAP', {
  ...COMM_IDS,
  /** QPN (or EECN) of the *receiver* of this message. */
  remoteQpn: uint(12, 0, 24),
  /** 5-bit time code, see common/timing.ts. */
  remoteCmResponseTimeout: uint(15, 0, 5),
  alternateLocalLid: uint(20, 0, 16),
  alternateRemoteLid: uint(22, 0, 16),
  alternateLocalGid: bytes(24, 16),
  alternateRemoteGid: bytes(40, 16),
  alternateFlowLabel: uint(56, 0, 20),
  alternateTrafficClass: uint(59, 0, 8),
  alternateHopLimit: uint(60, 0, 8),
  alternatePacketRate: uint(61, 2, 6),
  alternateSl: uint(62, 0, 4),
  alternateSubnetLocal: uint(62, 4, 1),
  /** 5-bit time code. */
  alternateLocalAckTimeout: uint(63, 0, 5),
  /** 168 bytes. */
  privateData: padded(64, 168),
});
export type CmLap = MessageOf<typeof lapCodec>;

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

/** Builds an APR. It always refuses, since a RoCE port has no alternate paths. */
export function aprOf(ids: Pick<CmApr, 'localCommId' | 'remoteCommId' | 'apStatus'>): CmApr {
  return { ...ids, additionalInfoLength: 0, additionalInfo: NO_DATA, privateData: NO_DATA };
}
