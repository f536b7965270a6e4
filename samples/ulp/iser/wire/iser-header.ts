/** The header of iSER before each PDU, and its Hello (RFC 7145, sections 9.2 to 9.5). */
import { bits, flag, format, uint, uint64, type ViewOf } from './field-table.js';
import { BHS_BYTES } from './initiator-pdus.js';
import { WireError } from './wire-error.js';

export const ISER_HEADER_BYTES = 28;
/** A control PDU without additional headers and data. */
export const ISER_MIN_PDU_BYTES = ISER_HEADER_BYTES + BHS_BYTES;

export const ISER_OPCODE = { CONTROL: 1, HELLO: 2, HELLO_REPLY: 3 } as const;
/** The one version of iSER that there is, on either side of a Hello. */
export const ISER_VERSION = 10;

export const iserHeader = format(
  'iSER header',
  ISER_HEADER_BYTES,
  {
    /** `ISER_OPCODE`. */
    opcode: bits(0, 0xf0),
    /** The target may read what the next two fields name: data of a write. */
    writeValid: flag(0, 0x08),
    /** The target may write what the two after them name: data of a read. */
    readValid: flag(0, 0x04),
    /** An RMR context (rkey). */
    writeStag: uint(4, 4),
    /** Address of the first byte that is not sent as unsolicited data. */
    writeBase: uint64(8),
    readStag: uint(16, 4),
    readBase: uint64(20),
  },
  { opcode: ISER_OPCODE.CONTROL },
);
export type IserHeader = ViewOf<typeof iserHeader>;

/** The first message of a side with iSERHelloRequired=Yes. */
export const iserHello = format(
  'iSER Hello',
  ISER_HEADER_BYTES,
  {
    opcode: bits(0, 0xf0),
    maxVersion: bits(1, 0xf0),
    minVersion: bits(1, 0x0f),
    /** RDMA Reads that the initiator takes at a time. */
    ird: uint(2, 2),
  },
  { opcode: ISER_OPCODE.HELLO, maxVersion: ISER_VERSION, minVersion: ISER_VERSION },
);
export type IserHello = ViewOf<typeof iserHello>;

export const iserHelloReply = format(
  'iSER HelloReply',
  ISER_HEADER_BYTES,
  {
    opcode: bits(0, 0xf0),
    /** The target has no version that the initiator speaks. */
    reject: flag(0, 0x01),
    maxVersion: bits(1, 0xf0),
    currentVersion: bits(1, 0x0f),
    /** RDMA Reads that the target will have open at a time. */
    ord: uint(2, 2),
  },
  { opcode: ISER_OPCODE.HELLO_REPLY, maxVersion: ISER_VERSION, currentVersion: ISER_VERSION },
);
export type IserHelloReply = ViewOf<typeof iserHelloReply>;

/** Kinds of received SENDs. */
export type IserMessage =
  | { readonly type: 'control'; readonly header: IserHeader; readonly pdu: Uint8Array }
  | { readonly type: 'hello'; readonly header: IserHello }
  | { readonly type: 'helloReply'; readonly header: IserHelloReply };

/**
 * @param bytes a whole SEND
 * @throws WireError for one that is too short, or an opcode that does not exist
 */
export function readIserMessage(bytes: Uint8Array): IserMessage {
  if (bytes.length < ISER_HEADER_BYTES) {
    const limit = `at least ${ISER_HEADER_BYTES}`;
    throw new WireError('length', 'iSER message in bytes', bytes.length, limit);
  }
  const opcode = bytes[0]! >>> 4;
  switch (opcode) {
    case ISER_OPCODE.CONTROL:
      return {
        type: 'control',
        header: iserHeader.view(bytes),
        pdu: bytes.subarray(ISER_HEADER_BYTES),
      };
    case ISER_OPCODE.HELLO:
      return { type: 'hello', header: iserHello.view(bytes) };
    case ISER_OPCODE.HELLO_REPLY:
      return { type: 'helloReply', header: iserHelloReply.view(bytes) };
    default:
      throw new WireError('opcode', 'iSER opcode', opcode, '1, 2 or 3');
  }
}

/** The private data of connection request and answer (IBTA annex A12): 4 bytes. */
export const iserCmHeader = format('iSER CM header', 4, {
  /** The sender cannot do with addresses that begin at 0. Set by every sender of this form. */
  zbvaNotSupported: flag(0, 0x80),
  /** The sender does not send, or does not take, SEND with invalidate. */
  sendWithInvalidateNotSupported: flag(0, 0x40),
});
