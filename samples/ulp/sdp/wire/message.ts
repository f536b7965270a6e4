/** Messages on a connection: a BSDH, the extension of its kind, and a payload (IBTA annex A4). */
import { type Bsdh, BSDH_BYTES, emitBsdh, MIDS, parseBsdh } from './bsdh.js';
import {
  readField,
  readLayout,
  readU64,
  uint,
  writeField,
  writeLayout,
  writeU64,
} from './fields.js';
import { demand } from './wire-error.js';

/** Modes of a direction, by their numbers on the wire. */
export const MODES = ['BUFFERED', 'COMBINED', 'PIPELINED'] as const;
export type Mode = (typeof MODES)[number];

/** The half that a ModeChange applies to, seen from its receiver. */
export type Half = 'RECV' | 'SEND';

/** Memory that a side has opened to the other. */
export interface Advert {
  /** Bytes, 1 to 2^32 - 1: for a SrcAvail including those in the message. */
  readonly lengthBytes: number;
  readonly rkey: number;
  readonly address: bigint;
}

/** Kind and extension of a message. */
export type Body =
  | {
      readonly mid:
        | 'DATA'
        | 'DIS_CONN'
        | 'ABORT_CONN'
        | 'SEND_SM'
        | 'SRC_AVAIL_CANCEL'
        | 'SINK_AVAIL_CANCEL'
        | 'SINK_CANCEL_ACK'
        | 'SUSP_COMM_ACK';
    }
  | {
      readonly mid: 'RDMA_WR_COMPL' | 'RDMA_RD_COMPL' | 'CH_RCV_BUF' | 'CH_RCV_BUF_ACK';
      readonly bytes: number;
    }
  | { readonly mid: 'MODE_CHANGE'; readonly mode: Mode; readonly half: Half }
  | { readonly mid: 'SUSP_COMM'; readonly serviceId: bigint }
  | ({ readonly mid: 'SRC_AVAIL' } & Advert)
  | ({ readonly mid: 'SINK_AVAIL'; readonly nonDiscard: number } & Advert);

export interface Message {
  readonly header: Bsdh;
  readonly body: Body;
  /** Offset of the payload, which is the rest of the message. */
  readonly payloadAt: number;
}

export type Sequence = Pick<Bsdh, 'flags' | 'bufs' | 'mseq' | 'mseqAck'>;

const BYTES = uint(BSDH_BYTES, 4);
const MODE = uint(BSDH_BYTES, 1);
const ADVERT = { lengthBytes: uint(BSDH_BYTES, 4), rkey: uint(BSDH_BYTES + 4, 4) };
const ADDRESS_AT = BSDH_BYTES + 8;
const NON_DISCARD = uint(BSDH_BYTES + 16, 4);
const SEND_HALF = 0x80;

/** Bytes before the payload. */
export function headBytes(mid: Body['mid']): number {
  return BSDH_BYTES + MIDS[mid].extensionBytes;
}

/**
 * Writes everything before the payload, which the caller writes. @returns bytes written @throws
 * RangeError if a value does not fit its field
 */
export function emitHead(
  data: Uint8Array,
  body: Body,
  { flags, bufs, mseq, mseqAck }: Sequence,
  payloadBytes: number,
): number {
  const head = headBytes(body.mid);
  emitBsdh(data, { mid: body.mid, flags, bufs, len: head + payloadBytes, mseq, mseqAck });
  data.fill(0, BSDH_BYTES, head);
  switch (body.mid) {
    case 'RDMA_WR_COMPL':
    case 'RDMA_RD_COMPL':
    case 'CH_RCV_BUF':
    case 'CH_RCV_BUF_ACK':
      writeField(data, BYTES, body.bytes);
      break;
    case 'MODE_CHANGE':
      writeField(
        data,
        MODE,
        (MODES.indexOf(body.mode) << 4) | (body.half === 'SEND' ? SEND_HALF : 0),
      );
      break;
    case 'SUSP_COMM':
      writeU64(data, BSDH_BYTES, body.serviceId);
      break;
    case 'SRC_AVAIL':
    case 'SINK_AVAIL':
      writeLayout(data, ADVERT, { lengthBytes: body.lengthBytes, rkey: body.rkey });
      writeU64(data, ADDRESS_AT, body.address);
      if (body.mid === 'SINK_AVAIL') writeField(data, NON_DISCARD, body.nonDiscard);
      break;
    default:
  }
  return head;
}

/**
 * Decodes a message by itself; the session decides whether it is allowed now. @throws SdpWireError
 * naming field, value and limit
 */
export function parseMessage(data: Uint8Array): Message {
  const header = parseBsdh(data);
  const { mid, len } = header;
  demand(len === data.length, 'bsdh.len', len, `the ${data.length} bytes that have come`);
  if (mid === 'HELLO' || mid === 'HELLO_ACK') {
    demand(false, 'bsdh.mid', MIDS[mid].number, 'no Hello: a connection has one already');
  }
  const payloadAt = headBytes(mid);
  const limit = `${payloadAt}${MIDS[mid].carries ? ' or more' : ''} in ${mid}`;
  demand(len >= payloadAt && (MIDS[mid].carries || len === payloadAt), 'bsdh.len', len, limit);
  return { header, body: parseBody(mid, data), payloadAt };
}

function parseBody(mid: Body['mid'], data: Uint8Array): Body {
  switch (mid) {
    case 'RDMA_WR_COMPL':
    case 'RDMA_RD_COMPL':
    case 'CH_RCV_BUF':
    case 'CH_RCV_BUF_ACK':
      return { mid, bytes: readField(data, BYTES) };
    case 'MODE_CHANGE':
      return { mid, ...parseMode(readField(data, MODE)) };
    case 'SUSP_COMM':
      return { mid, serviceId: readU64(data, BSDH_BYTES) };
    case 'SRC_AVAIL':
      return { mid, ...parseAdvert(data) };
    case 'SINK_AVAIL':
      return { mid, ...parseAdvert(data), nonDiscard: readField(data, NON_DISCARD) };
    default:
      return { mid };
  }
}

function parseMode(value: number): { mode: Mode; half: Half } {
  const mode = MODES[(value >> 4) & 7];
  demand(mode !== undefined, 'modeChange.mode', (value >> 4) & 7, `0 to ${MODES.length - 1}`);
  return { mode, half: (value & SEND_HALF) === 0 ? 'RECV' : 'SEND' };
}

function parseAdvert(data: Uint8Array): Advert {
  const { lengthBytes, rkey } = readLayout(data, ADVERT);
  demand(lengthBytes > 0, 'the length of an advertisement', lengthBytes, '1 or more');
  return { lengthBytes, rkey, address: readU64(data, ADDRESS_AT) };
}
