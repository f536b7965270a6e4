/** REP, reply to request for communication (IBTA 12.6.8). */
import { CM_MESSAGE_LENGTH } from './attribute-id.js';
import { padded, scattered, uint, uint64, wireCodec } from './field-table.js';
import type { Layout } from './field-table.js';

export const FAILOVER = { acceptedOrNone: 0, notSupported: 1, rejected: 2 } as const;

export interface CmRep {
  readonly localCommId: number;
  readonly remoteCommId: number;
  /** 0 for connected transports. */
  readonly localQkey: number;
  /** 0 for XRC. */
  readonly localQpn: number;
  /** Vendor id of enhanced connection establishment, 24 bits in three places. */
  readonly vendorId: number;
  /** RD context; for XRC the number of the target QP. */
  readonly localEecn: number;
  /** The PSN that the *receiver* of this REP must send with. */
  readonly startingPsn: number;
  readonly responderResources: number;
  readonly initiatorDepth: number;
  /** 5-bit time code, see time-codes.ts. */
  readonly targetAckDelay: number;
  /** `FAILOVER`. */
  readonly failoverAccepted: number;
  readonly endToEndFlowControl: number;
  readonly rnrRetryCount: number;
  readonly srq: number;
  readonly localCaGuid: bigint;
  /** 196 bytes. */
  readonly privateData: Uint8Array;
}

const layout: Layout<CmRep> = {
  localCommId: uint(0, 0, 32),
  remoteCommId: uint(4, 0, 32),
  localQkey: uint(8, 0, 32),
  localQpn: uint(12, 0, 24),
  vendorId: scattered(15, 19, 23),
  localEecn: uint(16, 0, 24),
  startingPsn: uint(20, 0, 24),
  responderResources: uint(24, 0, 8),
  initiatorDepth: uint(25, 0, 8),
  targetAckDelay: uint(26, 0, 5),
  failoverAccepted: uint(26, 5, 2),
  endToEndFlowControl: uint(26, 7, 1),
  rnrRetryCount: uint(27, 0, 3),
  srq: uint(27, 3, 1),
  localCaGuid: uint64(28),
  privateData: padded(36, 196),
};

export const repCodec = wireCodec<CmRep>('REP', CM_MESSAGE_LENGTH, layout);
