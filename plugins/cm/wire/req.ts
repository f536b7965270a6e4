/** REQ, request for communication (IBTA 12.6.5). "Local" means the sender's. */
import { cmCodec } from './cm-codec.js';
import { bytes, type MessageOf, padded, uint, uint64 } from './field-table.js';

/** Transport service types. Extended needs `EXTENDED_TRANSPORT`. */
export const TRANSPORT_SERVICE = { rc: 0, uc: 1, rd: 2, extended: 3 } as const;
export const EXTENDED_TRANSPORT = { none: 0, xrc: 1 } as const;

/** The value of LID fields on RoCE, which has no LIDs. */
export const ROCE_LID = 0xffff;

/** Alternate path fields of a REQ without one, to spread into it. */
export const NO_ALTERNATE_PATH = {
  alternateLocalLid: 0,
  alternateRemoteLid: 0,
  alternateLocalGid: new Uint8Array(16),
  alternateRemoteGid: new Uint8Array(16),
  alternateFlowLabel: 0,
  alternatePacketRate: 0,
  alternateTrafficClass: 0,
  alternateHopLimit: 0,
  alternateSl: 0,
  alternateSubnetLocal: 0,
  alternateLocalAckTimeout: 0,
} as const;

export const reqCodec = cmCodec('REQ', {
  localCommId: uint(0, 0, 32),
  /** Vendor id of enhanced connection establishment, 24 bits; 0 when not used. */
  vendorId: uint(5, 0, 24),
  serviceId: uint64(8),
  localCaGuid: uint64(16),
  /** 0 for connected transports. */
  localQkey: uint(28, 0, 32),
  localQpn: uint(32, 0, 24),
  /** RDMA reads and atomics the sender serves. */
  responderResources: uint(35, 0, 8),
  localEecn: uint(36, 0, 24),
  /** RDMA reads and atomics the sender wants to issue. */
  initiatorDepth: uint(39, 0, 8),
  remoteEecn: uint(40, 0, 24),
  /** 5-bit time code, see time-codes.ts. */
  remoteCmResponseTimeout: uint(43, 0, 5),
  /** `TRANSPORT_SERVICE`. */
  transportServiceType: uint(43, 5, 2),
  endToEndFlowControl: uint(43, 7, 1),
  /** The PSN that the *receiver* of this REQ must send with. */
  startingPsn: uint(44, 0, 24),
  /** 5-bit time code. */
  localCmResponseTimeout: uint(47, 0, 5),
  retryCount: uint(47, 5, 3),
  partitionKey: uint(48, 0, 16),
  /** Path MTU code, 1 (256 bytes) to 5 (4096): index in `PATH_MTU_BYTES` of the SPI. */
  pathMtu: uint(50, 0, 4),
  rdcExists: uint(50, 4, 1),
  rnrRetryCount: uint(50, 5, 3),
  maxCmRetries: uint(51, 0, 4),
  srq: uint(51, 4, 1),
  /** `EXTENDED_TRANSPORT`. */
  extendedTransportType: uint(51, 5, 3),

  primaryLocalLid: uint(52, 0, 16),
  primaryRemoteLid: uint(54, 0, 16),
  primaryLocalGid: bytes(56, 16),
  primaryRemoteGid: bytes(72, 16),
  primaryFlowLabel: uint(88, 0, 20),
  primaryPacketRate: uint(91, 2, 6),
  primaryTrafficClass: uint(92, 0, 8),
  primaryHopLimit: uint(93, 0, 8),
  primarySl: uint(94, 0, 4),
  primarySubnetLocal: uint(94, 4, 1),
  /** 5-bit time code. */
  primaryLocalAckTimeout: uint(95, 0, 5),

  /** Not 0: there is an alternate path. */
  alternateLocalLid: uint(96, 0, 16),
  alternateRemoteLid: uint(98, 0, 16),
  alternateLocalGid: bytes(100, 16),
  alternateRemoteGid: bytes(116, 16),
  alternateFlowLabel: uint(132, 0, 20),
  alternatePacketRate: uint(135, 2, 6),
  alternateTrafficClass: uint(136, 0, 8),
  alternateHopLimit: uint(137, 0, 8),
  alternateSl: uint(138, 0, 4),
  alternateSubnetLocal: uint(138, 4, 1),
  alternateLocalAckTimeout: uint(139, 0, 5),
  /** Suggest Alternate Path supported. */
  sapSupported: uint(139, 5, 1),

  /** 92 bytes; rdma_cm's header takes the first 36. */
  privateData: padded(140, 92),
});
export type CmReq = MessageOf<typeof reqCodec>;
