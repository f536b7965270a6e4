/** DREQ, request for communication release (IBTA 12.6.10). */
import { CM_MESSAGE_LENGTH } from './attribute-id.js';
import { padded, uint, wireCodec } from './field-table.js';
import type { Layout } from './field-table.js';

export interface CmDreq {
  readonly localCommId: number;
  readonly remoteCommId: number;
  /** QPN (or EECN) of the *receiver* of this message. */
  readonly remoteQpn: number;
  /** 220 bytes. */
  readonly privateData: Uint8Array;
}

const layout: Layout<CmDreq> = {
  localCommId: uint(0, 0, 32),
  remoteCommId: uint(4, 0, 32),
  remoteQpn: uint(8, 0, 24),
  privateData: padded(12, 220),
};

export const dreqCodec = wireCodec<CmDreq>('DREQ', CM_MESSAGE_LENGTH, layout);
