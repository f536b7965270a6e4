/**
 * Opcodes of each work request on the RC wire (IBTA 9.4, table 38): pure functions of its opcode.
 */
import { WrOpcode } from '../../../core/spi/index.js';
import { RC } from '../../../core/spi/wire/opcode.js';

/** A request that an RC queue pair knows: the numbers of WrOpcode have no gap. */
export function isRcOpcode(wrOpcode: number): boolean {
  return wrOpcode <= WrOpcode.SEND_WITH_INV;
}

export function isAtomic(wrOpcode: number): boolean {
  return wrOpcode === WrOpcode.ATOMIC_CMP_AND_SWP || wrOpcode === WrOpcode.ATOMIC_FETCH_AND_ADD;
}

/** READ and atomics: only their response completes them. */
export function needsResponse(wrOpcode: number): boolean {
  return wrOpcode >= WrOpcode.RDMA_READ && wrOpcode <= WrOpcode.ATOMIC_FETCH_AND_ADD;
}

/** Its message takes a receive of the peer's: SENDs, and a WRITE with immediate data. */
export function takesReceive(wrOpcode: number): boolean {
  return (
    (wrOpcode >= WrOpcode.RDMA_WRITE_WITH_IMM && wrOpcode <= WrOpcode.SEND_WITH_IMM) ||
    wrOpcode === WrOpcode.SEND_WITH_INV
  );
}

/** The BTH opcode of one packet of a SEND or WRITE, by its place in the message. */
export function dataOpcode(wrOpcode: number, first: boolean, last: boolean): number {
  if (wrOpcode === WrOpcode.RDMA_WRITE || wrOpcode === WrOpcode.RDMA_WRITE_WITH_IMM) {
    if (!last) return first ? RC.writeFirst : RC.writeMiddle;
    const immediate = wrOpcode === WrOpcode.RDMA_WRITE_WITH_IMM ? 1 : 0;
    return (first ? RC.writeOnly : RC.writeLast) + immediate;
  }
  if (!last) return first ? RC.sendFirst : RC.sendMiddle;
  if (wrOpcode === WrOpcode.SEND_WITH_INV) {
    return first ? RC.sendOnlyInvalidate : RC.sendLastInvalidate;
  }
  const immediate = wrOpcode === WrOpcode.SEND_WITH_IMM ? 1 : 0;
  return (first ? RC.sendOnly : RC.sendLast) + immediate;
}
