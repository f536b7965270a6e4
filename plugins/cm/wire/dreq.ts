/** DREQ, request for communication release, its reply DREP, and RTU (IBTA 12.6.9 to 12.6.11). */
import { cmCodec, COMM_IDS } from './cm-codec.js';
import { type MessageOf, padded, uint } from './field-table.js';

export const dreqCodec = cmCodec('DREQ', {
  ...COMM_IDS,
  /** QPN (or EECN) of the *receiver* of this message. */
  remoteQpn: uint(8, 0, 24),
  /** 220 bytes. */
  privateData: padded(12, 220),
});
export type CmDreq = MessageOf<typeof dreqCodec>;

/** The ids of the connection, and nothing else. */
const IDS_ONLY = {
  ...COMM_IDS,
  /** 224 bytes. */
  privateData: padded(8, 224),
} as const;

export const rtuCodec = cmCodec('RTU', IDS_ONLY);
export const drepCodec = cmCodec('DREP', IDS_ONLY);
