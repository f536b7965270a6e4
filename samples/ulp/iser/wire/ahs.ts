/** Additional header segments (RFC 7143, 11.2.2). */
import { WireError } from './wire-error.js';

/** Types of an additional header (RFC 7143, 11.2.2.1.2). */
export const AHS_TYPE = { EXTENDED_CDB: 1, BIDIRECTIONAL_READ_LENGTH: 2 } as const;

export interface AdditionalHeaders {
  /** The bytes of a CDB behind its first 16. */
  readonly extendedCdb?: Uint8Array;
  /** The length in bytes that a bidirectional command is expected to read. */
  readonly bidirectionalReadLength?: number;
}

const NONE: AdditionalHeaders = {};
/** SPC-4 4.3.1 has CDBs of at most 260 bytes. */
const MAX_EXTENDED_CDB_BYTES = 260 - 16;

/**
 * @param bytes all additional headers of a PDU, a multiple of 4 bytes
 * @throws WireError for one that is cut off, repeated or of a type that does not exist
 */
export function readAhs(bytes: Uint8Array): AdditionalHeaders {
  if (bytes.length === 0) return NONE;
  let extendedCdb: Uint8Array | undefined;
  let bidirectionalReadLength: number | undefined;
  for (let at = 0; at < bytes.length;) {
    const lengthBytes = (bytes[at]! << 8) | bytes[at + 1]!;
    const type = bytes[at + 2]!;
    // AHSLength counts from the byte behind the type, which is AHS-specific, on.
    const end = at + 3 + lengthBytes;
    if (lengthBytes < 1 || end > bytes.length) {
      throw new WireError('length', 'AHSLength', lengthBytes, `1 to ${bytes.length - at - 3}`);
    }
    const body = bytes.subarray(at + 4, end);
    if (type === AHS_TYPE.EXTENDED_CDB && extendedCdb === undefined) {
      if (body.length === 0 || body.length > MAX_EXTENDED_CDB_BYTES) {
        const limit = `1 to ${MAX_EXTENDED_CDB_BYTES}`;
        throw new WireError('field', 'bytes of the extended CDB', body.length, limit);
      }
      extendedCdb = body;
    } else if (
      type === AHS_TYPE.BIDIRECTIONAL_READ_LENGTH &&
      bidirectionalReadLength === undefined
    ) {
      if (body.length !== 4) {
        throw new WireError('length', 'AHSLength of a bidirectional read', lengthBytes, '5');
      }
      bidirectionalReadLength = new DataView(body.buffer, body.byteOffset, 4).getUint32(0);
    } else {
      throw new WireError('field', 'AHSType', type, '1 or 2, each once');
    }
    at = end + (-end & 3);
  }
  return {
    ...(extendedCdb && { extendedCdb }),
    ...(bidirectionalReadLength !== undefined && { bidirectionalReadLength }),
  };
}
