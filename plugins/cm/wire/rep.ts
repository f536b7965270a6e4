/** REP, reply to request for communication (IBTA 12.6.8). */
import { COMM_IDS, cmCodec } from './cm-codec.js';
import { type MessageOf, padded, scattered, uint, uint64 } from './field-table.js';

export const repCodec = cmCodec('REP', {
  ...COMM_IDS,
  /** 0 for connected transports. */
  localQkey: uint(8, 0, 32),
  /** 0 for XRC. */
  localQpn: uint(12, 0, 24),
  /** Vendor id of enhanced connection establishment, 24 bits in three places. */
  vendorId: scattered(15, 19, 23),
  /** RD context; for XRC the number of the target QP. */
  localEecn: uint(16, 0, 24),
  /** The PSN that the *receiver* of this REP must send with. */
  startingPsn: uint(20, 0, 24),
  responderResources: uint(24, 0, 8),
  initiatorDepth: uint(25, 0, 8),
  /** 5-bit time code, see time-codes.ts. */
  targetAckDelay: uint(26, 0, 5),
  /** 0 accepted, or none asked for; 1 not supported; 2 rejected. */
  failoverAccepted: uint(26, 5, 2),
  endToEndFlowControl: uint(26, 7, 1),
  rnrRetryCount: uint(27, 0, 3),
  srq: uint(27, 3, 1),
  localCaGuid: uint64(28),
  /** 196 bytes. */
  privateData: padded(36, 196),
});
export type CmRep = MessageOf<typeof repCodec>;
