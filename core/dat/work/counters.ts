/**
 * Counters of an endpoint (dat_ib_query_counters): posts and receives since the endpoint was made
 * or the counters were reset.
 */
import { readCounters } from '../../evd/index.js';
import { WcFlags, WcOpcode, WrOpcode } from '../../spi/index.js';
import { Piece, type Slab } from '../../spi/internal/index.js';

/** DAT_EP_COUNTERS that have an event here, with their places in the array. */
const EP_COUNTERS = {
  /** The counters of small messages fit in one cache line. */
  postSend: 0,
  postSendData: 1,
  postRecv: 2,
  recv: 3,
  recvData: 4,
  /** Connection attempts, accepted requests, and ends. */
  connect: 5,
  accept: 6,
  disconnect: 7,
  broken: 8,
  /** Requests posted, and their bytes. */
  postSendImmediate: 9,
  postSendInvalidate: 10,
  postWrite: 11,
  postWriteData: 12,
  postWriteImmediate: 13,
  postWriteImmediateData: 14,
  postRead: 15,
  postReadData: 16,
  postCompareSwap: 17,
  postFetchAdd: 18,
  /** Messages received, and their bytes. */
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
const MESSAGES: readonly Index[] = [C.recv, C.recvImmediate, C.recvInvalidate, C.recvRdmaImmediate];

/** By WrOpcode: the counter of a posted request, and the counter of its bytes. */
const POSTED: Readonly<Record<number, readonly [count: Index, bytes?: Index]>> = {
  [WrOpcode.SEND]: [C.postSend, C.postSendData],
  [WrOpcode.SEND_WITH_IMM]: [C.postSendImmediate, C.postSendData],
  [WrOpcode.SEND_WITH_INV]: [C.postSendInvalidate, C.postSendData],
  [WrOpcode.RDMA_WRITE]: [C.postWrite, C.postWriteData],
  [WrOpcode.RDMA_WRITE_WITH_IMM]: [C.postWriteImmediate, C.postWriteImmediateData],
  [WrOpcode.RDMA_READ]: [C.postRead, C.postReadData],
  [WrOpcode.ATOMIC_CMP_AND_SWP]: [C.postCompareSwap],
  [WrOpcode.ATOMIC_FETCH_AND_ADD]: [C.postFetchAdd],
};

/** Freed with its endpoint: counting stops then. */
export class EpCounters extends Piece {
  constructor(slab: Slab) {
    super(slab, NAMES.length * 8);
  }

  count(name: CounterName): void {
    this.bump(EP_COUNTERS[name], 1);
  }

  /** The present values; with `reset`, they begin again at 0. */
  read(reset: boolean): EpCounterValues {
    return readCounters(NAMES, this.doubles, this.firstDouble, reset);
  }

  private bump(index: number, by: number): void {
    const { doubles } = this;
    const at = this.firstDouble + index;
    doubles[at] = (doubles[at] ?? 0) + by;
  }

  /** Counts a posted request. */
  posted(opcode: number, lengthBytes: number): void {
    const row = POSTED[opcode];
    if (row === undefined) return;
    this.bump(row[0], 1);
    if (row[1] !== undefined) this.bump(row[1], lengthBytes);
  }

  /** Counts a posted receive. */
  receivePosted(): void {
    this.bump(C.postRecv, 1);
  }

  /** Receives that have succeeded, of any kind, since the counters were reset. */
  get messagesReceived(): number {
    const { doubles, firstDouble } = this;
    return MESSAGES.reduce<number>((sum, index) => sum + (doubles[firstDouble + index] ?? 0), 0);
  }

  /** Counts a receive that succeeded. `control` is the completion's first word. */
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
