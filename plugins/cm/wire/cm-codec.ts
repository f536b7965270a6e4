/** Common parts of the codecs of CM messages: MAD header values, ids, private data. */
import { type Layout, uint, wireCodec, type WireCodec } from './field-table.js';

/** MAD attribute ids (IBTA table 105). */
export const CM_ATTRIBUTE = {
  REQ: 0x0010,
  MRA: 0x0011,
  REJ: 0x0012,
  REP: 0x0013,
  RTU: 0x0014,
  DREQ: 0x0015,
  DREP: 0x0016,
  SIDR_REQ: 0x0017,
  SIDR_REP: 0x0018,
  LAP: 0x0019,
  APR: 0x001a,
} as const;

export type CmMessageName = keyof typeof CM_ATTRIBUTE;

/** All CM messages: class 7, class version 2, method Send (IBTA 12.6, 16.7). */
export const CM_CLASS = 0x07;
export const CM_CLASS_VERSION = 2;
export const CM_METHOD_SEND = 0x03;

/** Bytes of a CM message: the data of a MAD after its 24-byte header. */
export const CM_MESSAGE_LENGTH = 232;

/** "Local" and "remote" are from the sender's point of view. */
export const COMM_IDS = { localCommId: uint(0, 0, 32), remoteCommId: uint(4, 0, 32) } as const;

/** Empty private data or additional information. */
export const NO_DATA: Uint8Array = new Uint8Array(0);

export function cmCodec<L extends Layout>(name: CmMessageName, layout: L): WireCodec<L> {
  return wireCodec(name, CM_MESSAGE_LENGTH, layout);
}
