/**
 * Counters of an endpoint (DAT facts 1.8, dat_ib_query_counters): what has been posted and received
 * since it was made or since they were reset.
 */
import { Counters } from '../evd/index.js';
import { WcFlags, WcOpcode, WrOpcode } from '../spi/index.js';

/** DAT_EP_COUNTERS that we have an event for, with their places in the array. */
const EP_COUNTERS = {
  /** Connection attempts, accepted requests, and ends. */
  connect: 0,
  accept: 1,
  disconnect: 2,
  broken: 3,
  /** Requests posted, and their bytes. */
  postSend: 4,
  postSendData: 5,
  postSendImmediate: 6,
  postSendInvalidate: 7,
  postRecv: 8,
  postWrite: 9,
  postWriteData: 10,
  postWriteImmediate: 11,
  postWriteImmediateData: 12,
  postRead: 13,
  postReadData: 14,
  postCompareSwap: 15,
  postFetchAdd: 16,
  /** Messages received, and their bytes. */
  recv: 17,
  recvData: 18,
  recvImmediate: 19,
  recvImmediateData: 20,
  recvInvalidate: 21,
  recvRdmaImmediate: 22,
  recvRdmaImmediateData: 23,
} as const;

type CounterName = keyof typeof EP_COUNTERS;
type Index = (typeof EP_COUNTERS)[CounterName];
/** Counts, exact up to 2^53. Those named Data are bytes. */
export type EpCounterValues = Readonly<Record<CounterName, number>>;

const NAMES = Object.keys(EP_COUNTERS) as CounterName[];
const C = EP_COUNTERS;

/** By WrOpcode: what a posted request counts as, and where its bytes are counted. */
const POSTED: readonly (readonly [count: Index, bytes: Index | undefined])[] = (() => {
  const rows: (readonly [Index, Index | undefined])[] = [];
  rows[WrOpcode.SEND] = [C.postSend, C.postSendData];
  rows[WrOpcode.SEND_WITH_IMM] = [C.postSendImmediate, C.postSendData];
  rows[WrOpcode.SEND_WITH_INV] = [C.postSendInvalidate, C.postSendData];
  rows[WrOpcode.RDMA_WRITE] = [C.postWrite, C.postWriteData];
  rows[WrOpcode.RDMA_WRITE_WITH_IMM] = [C.postWriteImmediate, C.postWriteImmediateData];
  rows[WrOpcode.RDMA_READ] = [C.postRead, C.postReadData];
  rows[WrOpcode.ATOMIC_CMP_AND_SWP] = [C.postCompareSwap, undefined];
  rows[WrOpcode.ATOMIC_FETCH_AND_ADD] = [C.postFetchAdd, undefined];
  return rows;
})();

export class EpCounters extends Counters<CounterName> {
  constructor() {
    super(NAMES);
  }

  /** A request has been posted. */
  posted(opcode: number, lengthBytes: number): void {
    const row = POSTED[opcode];
    if (row === undefined) return;
    this.bump(row[0], 1);
    if (row[1] !== undefined) this.bump(row[1], lengthBytes);
  }

  /** A receive has been posted. */
  receivePosted(): void {
    this.bump(C.postRecv, 1);
  }

  /** A receive has succeeded. `control` is the completion's first word. */
  received(control: number, lengthBytes: number): void {
    const flags = (control >>> 16) & 0xff;
    if (((control >>> 8) & 0xff) === WcOpcode.RECV_RDMA_WITH_IMM) {
      this.bump(C.recvRdmaImmediate, 1);
      this.bump(C.recvRdmaImmediateData, lengthBytes);
    } else if ((flags & WcFlags.WITH_IMM) !== 0) {
      this.bump(C.recvImmediate, 1);
      this.bump(C.recvImmediateData, lengthBytes);
    } else {
      this.bump((flags & WcFlags.WITH_INV) === 0 ? C.recv : C.recvInvalidate, 1);
      this.bump(C.recvData, lengthBytes);
    }
  }
}
