/** What the codecs of CM messages have in common. */
import { CM_MESSAGE_LENGTH, type CmMessageName } from './attribute-id.js';
import { type Layout, uint, wireCodec, type WireCodec } from './field-table.js';

/** "Local" and "remote" are the sender's words. */
export const COMM_IDS = { localCommId: uint(0, 0, 32), remoteCommId: uint(4, 0, 32) } as const;

/** Private data, or additional information, of none. */
export const NO_DATA: Uint8Array = new Uint8Array(0);

export function cmCodec<L extends Layout>(name: CmMessageName, layout: L): WireCodec<L> {
  return wireCodec(name, CM_MESSAGE_LENGTH, layout);
}
