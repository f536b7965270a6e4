/** DREP, reply to request for communication release (IBTA 12.6.11). */
import { CM_MESSAGE_LENGTH } from './attribute-id.js';
import { padded, uint, wireCodec } from './field-table.js';
import type { Layout } from './field-table.js';

export interface CmDrep {
  readonly localCommId: number;
  readonly remoteCommId: number;
  /** 224 bytes. */
  readonly privateData: Uint8Array;
}

const layout: Layout<CmDrep> = {
  localCommId: uint(0, 0, 32),
  remoteCommId: uint(4, 0, 32),
  privateData: padded(8, 224),
};

export const drepCodec = wireCodec<CmDrep>('DREP', CM_MESSAGE_LENGTH, layout);
