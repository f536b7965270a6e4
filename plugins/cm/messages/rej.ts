/** Builds REJ messages with the fields by which their receivers find the connection. */
import { NO_DATA } from '../wire/cm-codec.js';
import type { CmRej } from '../wire/rej.js';

export interface RejOptions {
  readonly localCommId: number;
  readonly remoteCommId: number;
  /** `MESSAGE_REJECTED`. */
  readonly messageRejected: number;
  readonly reason: number;
  readonly info?: Uint8Array | undefined;
  readonly privateData?: Uint8Array | undefined;
}

export function rejOf(options: RejOptions): CmRej {
  const { localCommId, remoteCommId, messageRejected, reason, info = NO_DATA } = options;
  return {
    localCommId,
    remoteCommId,
    messageRejected,
    reason,
    rejectInfoLength: info.length,
    additionalRejectInfo: info,
    privateData: options.privateData ?? NO_DATA,
  };
}

/** A GUID as additional information: receivers of reason 4 find the connection by it. */
export function guidInfo(guid: bigint): Uint8Array {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, guid);
  return bytes;
}

/** The GUID in a REJ of reason 4, or undefined. */
export function guidOfInfo({ rejectInfoLength, additionalRejectInfo }: CmRej): bigint | undefined {
  if (rejectInfoLength < 8) return undefined;
  const { buffer, byteOffset } = additionalRejectInfo;
  return new DataView(buffer, byteOffset, 8).getBigUint64(0);
}

/** The additional information of a REJ, or undefined. */
export function infoOf({ rejectInfoLength, additionalRejectInfo }: CmRej): Uint8Array | undefined {
  return rejectInfoLength > 0 ? additionalRejectInfo.slice(0, rejectInfoLength) : undefined;
}
