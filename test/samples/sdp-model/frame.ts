/**
 * What a message of SDP says, read by offsets alone: this model shares no line with the sample that
 * it judges. Facts of the Sockets Direct Protocol: IBTA annex A4.
 */

export const MID = {
  HELLO: 0x00,
  HELLO_ACK: 0x01,
  DISCONN: 0x02,
  ABORT: 0x03,
  SEND_SM: 0x04,
  RDMA_WR_COMPL: 0x05,
  RDMA_RD_COMPL: 0x06,
  MODE_CHANGE: 0x07,
  SRC_AVAIL_CANCEL: 0x08,
  SINK_AVAIL_CANCEL: 0x09,
  SINK_CANCEL_ACK: 0x0a,
  CH_RCV_BUF: 0x0b,
  CH_RCV_BUF_ACK: 0x0c,
  SINK_AVAIL: 0xfd,
  SRC_AVAIL: 0xfe,
  DATA: 0xff,
} as const;

export const FLAG = { OOB_PRES: 1, OOB_PEND: 2, REQ_PIPE: 4 } as const;
const KNOWN_FLAGS = FLAG.OOB_PRES | FLAG.OOB_PEND | FLAG.REQ_PIPE;

export const BSDH_BYTES = 16;

/** By message: its name, the bytes behind the base header, and whether payload may follow them. */
export const KINDS: ReadonlyMap<number, { name: string; extra: number; payload: boolean }> =
  new Map([
    [MID.HELLO, { name: 'Hello', extra: 0, payload: true }],
    [MID.HELLO_ACK, { name: 'HelloAck', extra: 0, payload: true }],
    [MID.DISCONN, { name: 'DisConn', extra: 0, payload: false }],
    [MID.ABORT, { name: 'AbortConn', extra: 0, payload: false }],
    [MID.SEND_SM, { name: 'SendSm', extra: 0, payload: false }],
    [MID.RDMA_WR_COMPL, { name: 'RdmaWrCompl', extra: 4, payload: false }],
    [MID.RDMA_RD_COMPL, { name: 'RdmaRdCompl', extra: 4, payload: false }],
    [MID.MODE_CHANGE, { name: 'ModeChange', extra: 4, payload: false }],
    [MID.SRC_AVAIL_CANCEL, { name: 'SrcAvailCancel', extra: 0, payload: false }],
    [MID.SINK_AVAIL_CANCEL, { name: 'SinkAvailCancel', extra: 0, payload: false }],
    [MID.SINK_CANCEL_ACK, { name: 'SinkCancelAck', extra: 0, payload: false }],
    [MID.CH_RCV_BUF, { name: 'ChRcvBuf', extra: 4, payload: false }],
    [MID.CH_RCV_BUF_ACK, { name: 'ChRcvBufAck', extra: 4, payload: false }],
    [MID.SINK_AVAIL, { name: 'SinkAvail', extra: 20, payload: true }],
    [MID.SRC_AVAIL, { name: 'SrcAvail', extra: 16, payload: true }],
    [MID.DATA, { name: 'Data', extra: 0, payload: true }],
  ]);

export interface Frame {
  readonly mid: number;
  readonly name: string;
  readonly flags: number;
  readonly bufs: number;
  readonly mseq: number;
  readonly mseqAck: number;
  readonly payloadBytes: number;
  /** Of the whole message. */
  readonly bytes: number;
  readonly view: DataView;
}

/** @returns what is wrong with it where it is no message at all */
export function frameOf(bytes: Uint8Array): Frame | string {
  if (bytes.length < BSDH_BYTES) return `${bytes.length} bytes hold no base header`;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const mid = view.getUint8(0);
  const flags = view.getUint8(1);
  const kind = KINDS.get(mid);
  if (kind === undefined) return `message id 0x${mid.toString(16)} is not known`;
  const { name, extra, payload } = kind;
  const length = view.getUint32(4);
  if ((flags & ~KNOWN_FLAGS) !== 0) return `${name}: flags 0x${flags.toString(16)}`;
  if (length !== bytes.length) return `${name}: says ${length} bytes and has ${bytes.length}`;
  const payloadBytes = length - BSDH_BYTES - extra;
  if (payloadBytes < 0) return `${name}: ${length} bytes are too few`;
  if (!payload && payloadBytes > 0) return `${name}: ${payloadBytes} bytes too many`;
  const bufs = view.getUint16(2);
  const [mseq, mseqAck] = [view.getUint32(8), view.getUint32(12)];
  return { mid, name, flags, bufs, mseq, mseqAck, payloadBytes, bytes: length, view };
}

/** The words behind the base header. */
export const word = ({ view }: Frame, at: number): number => view.getUint32(BSDH_BYTES + at);
export const address = ({ view }: Frame, at: number): bigint => view.getBigUint64(BSDH_BYTES + at);
