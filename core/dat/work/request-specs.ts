/** The posting calls of requests, a row each. */
import { type DeviceCapability, WrFlags, WrOpcode } from '../../spi/index.js';
import { CompletionFlags, MemPrivileges } from '../common/constants.js';
import { EntryFlag } from './entry-ring.js';

const { SUPPRESS, SOLICITED_WAIT, UNSIGNALLED, BARRIER_FENCE } = CompletionFlags;
const RDMA_FLAGS = SUPPRESS | BARRIER_FENCE;
const SEND_FLAGS = RDMA_FLAGS | SOLICITED_WAIT;

/** Decides the privilege that the segments need, and the limits that apply. */
export type RequestKind = 'send' | 'write' | 'read' | 'atomic';

/** Description of a posting call. */
export interface RequestSpec {
  /** The call; core/errors/call-arguments.ts has the numbers of its arguments. */
  readonly operation: string;
  readonly opcode: number;
  readonly kind: RequestKind;
  /** Privilege that the regions of its segments must grant. */
  readonly privilege: number;
  /** CompletionFlags that it takes besides UNSIGNALLED. */
  readonly flags: number;
  /** Slot flags of its entry. */
  readonly slot: number;
  /** Capability that the device must have. */
  readonly capability: DeviceCapability | undefined;
  /** Its argument of 32 bits, or of 64 where it is atomic, by name. */
  readonly operand: string | undefined;
}

/** All from one literal, so that the hot path sees one hidden class. */
const row = (
  operation: string,
  opcode: number,
  kind: RequestKind,
  extras: Partial<RequestSpec> = {},
): RequestSpec => ({
  operation,
  opcode,
  kind,
  privilege:
    kind === 'read' || kind === 'atomic' ? MemPrivileges.LOCAL_WRITE : MemPrivileges.LOCAL_READ,
  flags: kind === 'send' ? SEND_FLAGS : RDMA_FLAGS,
  slot: 0,
  capability: undefined,
  operand: undefined,
  ...extras,
});

export const SEND = row('ep.postSend', WrOpcode.SEND, 'send');
export const SEND_WITH_INVALIDATE = row(
  'ep.postSendWithInvalidate',
  WrOpcode.SEND_WITH_INV,
  'send',
  { capability: 'send-with-invalidate', operand: 'rmrContext' },
);
export const SEND_WITH_IMMEDIATE = row('ep.postSendWithImmediate', WrOpcode.SEND_WITH_IMM, 'send', {
  operand: 'immediate',
});
export const RDMA_WRITE = row('ep.postRdmaWrite', WrOpcode.RDMA_WRITE, 'write');
export const RDMA_WRITE_WITH_IMMEDIATE = row(
  'ep.postRdmaWriteWithImmediate',
  WrOpcode.RDMA_WRITE_WITH_IMM,
  'write',
  { operand: 'immediate', flags: SEND_FLAGS, slot: EntryFlag.IMMEDIATE },
);
export const RDMA_READ = row('ep.postRdmaRead', WrOpcode.RDMA_READ, 'read');
export const RDMA_READ_TO_RMR = row('ep.postRdmaReadToRmr', WrOpcode.RDMA_READ, 'read');
export const FETCH_ADD = row('ep.postFetchAdd', WrOpcode.ATOMIC_FETCH_AND_ADD, 'atomic', {
  capability: 'atomic',
  operand: 'add',
});
export const COMPARE_SWAP = row('ep.postCompareSwap', WrOpcode.ATOMIC_CMP_AND_SWP, 'atomic', {
  capability: 'atomic',
  operand: 'compare',
});

/** WrFlags of CompletionFlags, without SIGNALED. */
export function wrFlagsOf(flags: number): number {
  const fence = (flags & BARRIER_FENCE) === 0 ? 0 : WrFlags.FENCE;
  return (flags & SOLICITED_WAIT) === 0 ? fence : fence | WrFlags.SOLICITED;
}

/** Slot flags of CompletionFlags. */
export function slotFlagsOf(flags: number): number {
  const hidden = (flags & SUPPRESS) === 0 ? 0 : EntryFlag.HIDDEN;
  return (flags & UNSIGNALLED) === 0 ? hidden : hidden | EntryFlag.QUIET;
}
