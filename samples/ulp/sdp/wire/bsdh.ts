/**
 * The Base Sockets Direct Header at the start of every message (IBTA annex A4: BSDH), and the
 * message identifiers.
 */
import { readField, uint, writeField } from './fields.js';
import { demand } from './wire-error.js';

export const BSDH_BYTES = 16;

/**
 * Message identifiers: the number on the wire, the bytes of the extension after the BSDH, and
 * whether a payload may follow. Hello and HelloAck are only sent in private data of the CM.
 */
export const MIDS = {
  HELLO: { number: 0x00, extensionBytes: 60, carries: false },
  HELLO_ACK: { number: 0x01, extensionBytes: 164, carries: false },
  DIS_CONN: { number: 0x02, extensionBytes: 0, carries: false },
  ABORT_CONN: { number: 0x03, extensionBytes: 0, carries: false },
  SEND_SM: { number: 0x04, extensionBytes: 0, carries: false },
  RDMA_WR_COMPL: { number: 0x05, extensionBytes: 4, carries: false },
  RDMA_RD_COMPL: { number: 0x06, extensionBytes: 4, carries: false },
  MODE_CHANGE: { number: 0x07, extensionBytes: 4, carries: false },
  SRC_AVAIL_CANCEL: { number: 0x08, extensionBytes: 0, carries: false },
  SINK_AVAIL_CANCEL: { number: 0x09, extensionBytes: 0, carries: false },
  SINK_CANCEL_ACK: { number: 0x0a, extensionBytes: 0, carries: false },
  CH_RCV_BUF: { number: 0x0b, extensionBytes: 4, carries: false },
  CH_RCV_BUF_ACK: { number: 0x0c, extensionBytes: 4, carries: false },
  SUSP_COMM: { number: 0x0d, extensionBytes: 8, carries: false },
  SUSP_COMM_ACK: { number: 0x0e, extensionBytes: 0, carries: false },
  SINK_AVAIL: { number: 0xfd, extensionBytes: 20, carries: true },
  SRC_AVAIL: { number: 0xfe, extensionBytes: 16, carries: true },
  DATA: { number: 0xff, extensionBytes: 0, carries: true },
} as const;

export type MidName = keyof typeof MIDS;

const NAMES = new Map<number, MidName>(
  (Object.keys(MIDS) as MidName[]).map((name) => [MIDS[name].number, name]),
);

/** Bits of the BSDH's flags. */
export const Flags = {
  /** The last byte of the payload is urgent. */
  OOB_PRES: 1,
  /** Urgent data will follow. */
  OOB_PEND: 2,
  /** The receiver of the data wants its source in pipelined mode. */
  REQ_PIPE: 4,
} as const;
const ALL_FLAGS = Flags.OOB_PRES | Flags.OOB_PEND | Flags.REQ_PIPE;

const BSDH = {
  mid: uint(0, 1),
  flags: uint(1, 1),
  bufs: uint(2, 2),
  len: uint(4, 4),
  mseq: uint(8, 4),
  mseqAck: uint(12, 4),
};

export interface Bsdh {
  readonly mid: MidName;
  /** A set of bits of `Flags`. */
  readonly flags: number;
  /** Receives that the sender has posted, 0 to 65535. */
  readonly bufs: number;
  /** Bytes of the message, including this header. */
  readonly len: number;
  /** Sequence number of the message, modulo 2^32. */
  readonly mseq: number;
  /** Sequence number of the last message that the sender has received. */
  readonly mseqAck: number;
}

/** @throws RangeError if a value does not fit its field */
export function emitBsdh(data: Uint8Array, header: Bsdh): void {
  writeField(data, BSDH.mid, MIDS[header.mid].number);
  writeField(data, BSDH.flags, header.flags);
  writeField(data, BSDH.bufs, header.bufs);
  writeField(data, BSDH.len, header.len);
  writeField(data, BSDH.mseq, header.mseq);
  writeField(data, BSDH.mseqAck, header.mseqAck);
}

/**
 * Decodes the header and checks each field. The caller compares `len` with the bytes received.
 * @throws SdpWireError naming field, value and limit
 */
export function parseBsdh(data: Uint8Array): Bsdh {
  demand(data.length >= BSDH_BYTES, 'bytes of a message', data.length, `${BSDH_BYTES} or more`);
  const number = readField(data, BSDH.mid);
  const mid = NAMES.get(number);
  demand(mid !== undefined, 'bsdh.mid', number, 'a message identifier of SDP');
  const flags = readField(data, BSDH.flags);
  demand((flags & ~ALL_FLAGS) === 0, 'bsdh.flags', flags, `of the bits 0x${ALL_FLAGS}`);
  return {
    mid,
    flags,
    bufs: readField(data, BSDH.bufs),
    len: readField(data, BSDH.len),
    mseq: readField(data, BSDH.mseq),
    mseqAck: readField(data, BSDH.mseqAck),
  };
}
