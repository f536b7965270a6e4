/**
 * RTU, ready to use, and DREP, reply to request for communication release (IBTA 12.6.9, 12.6.11):
 * they say nothing but which connection they are of.
 */
import { COMM_IDS, cmCodec } from './cm-codec.js';
import { padded } from './field-table.js';

const layout = {
  ...COMM_IDS,
  /** 224 bytes. */
  privateData: padded(8, 224),
} as const;

export const rtuCodec = cmCodec('RTU', layout);
export const drepCodec = cmCodec('DREP', layout);
