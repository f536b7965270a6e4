/** MRA, message receipt acknowledgement: "wait longer" (IBTA 12.6.6). */
import { CM_MESSAGE_LENGTH } from './attribute-id.js';
import { padded, uint, wireCodec } from './field-table.js';
import type { Layout } from './field-table.js';

/** The message an MRA answers. */
export const MESSAGE_MRAED = { req: 0, rep: 1, lap: 2 } as const;

export interface CmMra {
  readonly localCommId: number;
  readonly remoteCommId: number;
  /** `MESSAGE_MRAED`. */
  readonly messageMraed: number;
  /** 5-bit time code, see time-codes.ts. */
  readonly serviceTimeout: number;
  /** 222 bytes. */
  readonly privateData: Uint8Array;
}

const layout: Layout<CmMra> = {
  localCommId: uint(0, 0, 32),
  remoteCommId: uint(4, 0, 32),
  messageMraed: uint(8, 0, 2),
  serviceTimeout: uint(9, 0, 5),
  privateData: padded(10, 222),
};

export const mraCodec = wireCodec<CmMra>('MRA', CM_MESSAGE_LENGTH, layout);
