/** LAP, load alternate path (IBTA 12.8.1). Linux ignores it on RoCE. */
import { COMM_IDS, cmCodec } from './cm-codec.js';
import { bytes, type MessageOf, padded, uint } from './field-table.js';

export const lapCodec = cmCodec('LAP', {
  ...COMM_IDS,
  /** QPN (or EECN) of the *receiver* of this message. */
  remoteQpn: uint(12, 0, 24),
  /** 5-bit time code, see time-codes.ts. */
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
