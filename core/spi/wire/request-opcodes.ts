/**
 * Send requests, a row each: the opcodes of their packets (IBTA 9.4, table 38), the answer that
 * completes them and the opcode of their completion. The transports that have a request follow from
 * opcode.ts. The data path reads the flat arrays, which are made from these rows.
 */
import { WcOpcode, WrOpcode } from './ib.js';
import { OPCODE_BIT, OPCODES, type Operation, OPERATION, RC, UC_BASE, UD_BASE } from './opcode.js';

interface RequestRow {
  /** Opcode of its work completion. */
  readonly completion: WcOpcode;
  /** OPERATION of the packet that completes it on RC; `unknown` if nothing goes on the wire. */
  readonly answeredBy: Operation;
  /** Opcodes of its packets on RC, as `[first, middle, last, only]`; one if it is never split. */
  readonly wire: readonly [number, number, number, number] | readonly [number] | readonly [];
}

const { acknowledge, readResponse, atomicAcknowledge, unknown } = OPERATION;

// prettier-ignore
const ROWS: Readonly<Record<WrOpcode, RequestRow>> = {
  [WrOpcode.RDMA_WRITE]: {
    completion: WcOpcode.RDMA_WRITE, answeredBy: acknowledge,
    wire: [RC.writeFirst, RC.writeMiddle, RC.writeLast, RC.writeOnly],
  },
  [WrOpcode.RDMA_WRITE_WITH_IMM]: {
    completion: WcOpcode.RDMA_WRITE, answeredBy: acknowledge,
    wire: [RC.writeFirst, RC.writeMiddle, RC.writeLastImm, RC.writeOnlyImm],
  },
  [WrOpcode.SEND]: {
    completion: WcOpcode.SEND, answeredBy: acknowledge,
    wire: [RC.sendFirst, RC.sendMiddle, RC.sendLast, RC.sendOnly],
  },
  [WrOpcode.SEND_WITH_IMM]: {
    completion: WcOpcode.SEND, answeredBy: acknowledge,
    wire: [RC.sendFirst, RC.sendMiddle, RC.sendLastImm, RC.sendOnlyImm],
  },
  [WrOpcode.SEND_WITH_INV]: {
    completion: WcOpcode.SEND, answeredBy: acknowledge,
    wire: [RC.sendFirst, RC.sendMiddle, RC.sendLastInvalidate, RC.sendOnlyInvalidate],
  },
  [WrOpcode.RDMA_READ]: {
    completion: WcOpcode.RDMA_READ, answeredBy: readResponse, wire: [RC.readRequest],
  },
  [WrOpcode.ATOMIC_CMP_AND_SWP]: {
    completion: WcOpcode.COMP_SWAP, answeredBy: atomicAcknowledge, wire: [RC.compareSwap],
  },
  [WrOpcode.ATOMIC_FETCH_AND_ADD]: {
    completion: WcOpcode.FETCH_ADD, answeredBy: atomicAcknowledge, wire: [RC.fetchAdd],
  },
  [WrOpcode.LOCAL_INV]: { completion: WcOpcode.LOCAL_INV, answeredBy: unknown, wire: [] },
  [WrOpcode.BIND_MW]: { completion: WcOpcode.BIND_MW, answeredBy: unknown, wire: [] },
};

/** Flags of `REQUEST_BITS`; 0 for a number that is no request. */
export const REQUEST_BIT = {
  rc: 1,
  uc: 2,
  ud: 4,
  /** Nothing goes on the wire: BIND_MW and LOCAL_INV. */
  local: 8,
  /** READ and atomics: only their response completes them. */
  needsResponse: 16,
  /** Its message takes a receive of the peer: SENDs, and a WRITE with immediate data. */
  takesReceive: 32,
} as const;

function bitsOf({ wire, answeredBy }: RequestRow): number {
  const only = wire.at(-1);
  // What stays in the device is for every queue pair with a peer.
  if (only === undefined) return REQUEST_BIT.local | REQUEST_BIT.rc | REQUEST_BIT.uc;
  let bits: number = REQUEST_BIT.rc;
  if (OPCODES[UC_BASE + only]!.known) bits |= REQUEST_BIT.uc;
  if (OPCODES[UD_BASE + only]!.known) bits |= REQUEST_BIT.ud;
  if (answeredBy !== acknowledge) bits |= REQUEST_BIT.needsResponse;
  if ((OPCODES[only]!.bits & OPCODE_BIT.receive) !== 0) bits |= REQUEST_BIT.takesReceive;
  return bits;
}

/** By opcode of the request: its `REQUEST_BIT` flags. */
export const REQUEST_BITS = new Uint8Array(256);
/** By opcode of the request: OPERATION of the packet that completes it. */
export const ANSWERED_BY = new Uint8Array(256);
/** By opcode of the request: that of its completion. SEND if there is no such request: it fails. */
export const COMPLETED_AS = new Uint8Array(256).fill(WcOpcode.SEND);
/** Four opcodes for each opcode of a request; `packetOpcode` finds one of them. */
const PACKETS = new Uint8Array(4 * 256);

for (const [wrOpcode, row] of Object.entries(ROWS)) {
  const at = Number(wrOpcode);
  const { wire, completion, answeredBy } = row;
  const [first = 0, middle = first, last = first, only = first] = wire;
  REQUEST_BITS[at] = bitsOf(row);
  ANSWERED_BY[at] = answeredBy;
  COMPLETED_AS[at] = completion;
  PACKETS.set([middle, first, last, only], at * 4);
}

/** The RC opcode of one packet of a request, by the packet's place in the message. */
export function packetOpcode(wrOpcode: number, first: boolean, last: boolean): number {
  return PACKETS[wrOpcode * 4 + (first ? 1 : 0) + (last ? 2 : 0)]!;
}

export function isRead(wrOpcode: number): boolean {
  return ANSWERED_BY[wrOpcode] === readResponse;
}

export function isAtomic(wrOpcode: number): boolean {
  return ANSWERED_BY[wrOpcode] === atomicAcknowledge;
}

export function isLocal(wrOpcode: number): boolean {
  return (REQUEST_BITS[wrOpcode]! & REQUEST_BIT.local) !== 0;
}

export function needsResponse(wrOpcode: number): boolean {
  return (REQUEST_BITS[wrOpcode]! & REQUEST_BIT.needsResponse) !== 0;
}

export function takesReceive(wrOpcode: number): boolean {
  return (REQUEST_BITS[wrOpcode]! & REQUEST_BIT.takesReceive) !== 0;
}
