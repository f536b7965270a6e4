/** MRA, message receipt acknowledgement: "wait longer" (IBTA 12.6.6). */
import { COMM_IDS, cmCodec } from './cm-codec.js';
import { padded, uint } from './field-table.js';

/** The message an MRA answers. */
export const MESSAGE_MRAED = { req: 0, rep: 1, lap: 2 } as const;

export const mraCodec = cmCodec('MRA', {
  ...COMM_IDS,
  /** `MESSAGE_MRAED`. */
  messageMraed: uint(8, 0, 2),
  /** 5-bit time code, see time-codes.ts. */
  serviceTimeout: uint(9, 0, 5),
  /** 222 bytes. */
  privateData: padded(10, 222),
});
