/** LAP, load alternate path (IBTA 12.8.1). Linux ignores it on RoCE. */
import { CM_MESSAGE_LENGTH } from './attribute-id.js';
import { bytes, padded, uint, wireCodec } from './field-table.js';
import type { Layout } from './field-table.js';

export interface CmLap {
  readonly localCommId: number;
  readonly remoteCommId: number;
  /** QPN (or EECN) of the *receiver* of this message. */
  readonly remoteQpn: number;
  /** 5-bit time code, see time-codes.ts. */
  readonly remoteCmResponseTimeout: number;
  readonly alternateLocalLid: number;
  readonly alternateRemoteLid: number;
  readonly alternateLocalGid: Uint8Array;
  readonly alternateRemoteGid: Uint8Array;
  readonly alternateFlowLabel: number;
  readonly alternateTrafficClass: number;
  readonly alternateHopLimit: number;
  readonly alternatePacketRate: number;
  readonly alternateSl: number;
  readonly alternateSubnetLocal: number;
  /** 5-bit time code. */
  readonly alternateLocalAckTimeout: number;
  /** 168 bytes. */
  readonly privateData: Uint8Array;
}

const layout: Layout<CmLap> = {
  localCommId: uint(0, 0, 32),
  remoteCommId: uint(4, 0, 32),
  remoteQpn: uint(12, 0, 24),
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
  alternateLocalAckTimeout: uint(63, 0, 5),
  privateData: padded(64, 168),
};

export const lapCodec = wireCodec<CmLap>('LAP', CM_MESSAGE_LENGTH, layout);
