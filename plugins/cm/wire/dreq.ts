/** DREQ, request for communication release (IBTA 12.6.10). */
import { COMM_IDS, cmCodec } from './cm-codec.js';
import { type MessageOf, padded, uint } from './field-table.js';

export const dreqCodec = cmCodec('DREQ', {
  ...COMM_IDS,
  /** QPN (or EECN) of the *receiver* of this message. */
  remoteQpn: uint(8, 0, 24),
  /** 220 bytes. */
  privateData: padded(12, 220),
});
export type CmDreq = MessageOf<typeof dreqCodec>;
