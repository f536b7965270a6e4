/** RTU, ready to use (IBTA 12.6.9). */
import { CM_MESSAGE_LENGTH } from './attribute-id.js';
import { padded, uint, wireCodec } from './field-table.js';
import type { Layout } from './field-table.js';

export interface CmRtu {
  readonly localCommId: number;
  readonly remoteCommId: number;
  /** 224 bytes. */
  readonly privateData: Uint8Array;
}

const layout: Layout<CmRtu> = {
  localCommId: uint(0, 0, 32),
  remoteCommId: uint(4, 0, 32),
  privateData: padded(8, 224),
};

export const rtuCodec = wireCodec<CmRtu>('RTU', CM_MESSAGE_LENGTH, layout);
