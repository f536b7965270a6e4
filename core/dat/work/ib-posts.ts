/**
 * Posting calls of the IB extensions (DAT facts 1.8): immediate data and 64-bit atomics. Their
 * completions are events with number IB_DTO, and the operation says which.
 */
import { WrOpcode } from '../../spi/index.js';
import { CompletionFlags, MemPrivileges } from '../common/constants.js';
import { remoteSegment } from './poster.js';
import { EpPosts, RDMA_FLAGS, SEND_FLAGS } from './posts.js';
import { invalid } from '../common/guards.js';
import { positionOf } from './post-arguments.js';
import { checkSegments, checkU32, checkU64 } from './post-checks.js';
import type { LmrSegment, RemoteAddress, RemoteSegment, Segments } from '../memory/segment.js';

const { DEFAULT } = CompletionFlags;
const ATOMIC_BYTES = 8;
const MAX_U32 = 2 ** 32 - 1;

/** Two operands as words, without an object for either. */
const operands = new BigUint64Array(2);
const operandWords = new Uint32Array(operands.buffer);

/** The part of `Ep` that posts what only InfiniBand has. */
export abstract class EpIbPosts extends EpPosts {
  /**
   * Posts a send that carries 32 bits of immediate data beside its bytes. The peer's receive
   * completes as RECV_MSG_IMMED with `immediate`.
   * @param immediate u32; its big-endian bytes go on the wire, so both sides see the same number
   * @throws DatError as `postSend`
   */
  postSendWithImmediate(
    segments: Segments,
    cookie: number,
    immediate: number,
    flags: number = DEFAULT,
  ): void {
    const operation = 'ep.postSendWithImmediate';
    this.traceRequest(operation, segments, cookie, undefined, flags);
    checkU32(operation, 'immediate', immediate);
    this.send(operation, WrOpcode.SEND_WITH_IMM, segments, cookie, flags, immediate);
  }

  /**
   * Posts an RDMA write that tells the peer (dat_ib_post_rdma_write_immed): behind the written
   * bytes, the peer's oldest receive completes as RECV_IMMED with `immediate`; its memory is left
   * alone. Without a receive posted there, it waits as a send does.
   * @param remote where to
   * @param immediate u32, as `postSendWithImmediate`
   * @param flags CompletionFlags: SUPPRESS, SOLICITED_WAIT, BARRIER_FENCE, UNSIGNALLED
   * @throws DatError as `postRdmaWrite`
   */
  postRdmaWriteWithImmediate(
    segments: Segments,
    cookie: number,
    remote: RemoteSegment | RemoteAddress,
    immediate: number,
    flags: number = DEFAULT,
  ): void {
    const operation = 'ep.postRdmaWriteWithImmediate';
    this.traceRequest(operation, segments, cookie, remote, flags);
    checkU32(operation, 'immediate', immediate);
    const opcode = WrOpcode.RDMA_WRITE_WITH_IMM;
    this.write(operation, opcode, SEND_FLAGS, segments, cookie, remote, flags, immediate);
  }

  /**
   * Posts an atomic addition to 64 bits of the peer's memory (dat_ib_post_fetch_and_add). The old
   * value comes back into `result`, in the byte order of this machine; the sum wraps at 2^64.
   * Atomic against other atomics of the peer's device, not against its processor.
   * @param result 8 bytes, with LOCAL_WRITE
   * @param remote a multiple of 8; the peer's region needs REMOTE_ATOMIC
   * @param add u64; for a subtraction, `BigInt.asUintN(64, -n)`
   * @param flags CompletionFlags: SUPPRESS, BARRIER_FENCE, UNSIGNALLED
   * @throws DatError as `postRdmaRead`; DAT_MODEL_NOT_SUPPORTED where the device has no atomics
   */
  postFetchAdd(
    result: LmrSegment,
    cookie: number,
    remote: RemoteSegment | RemoteAddress,
    add: bigint,
    flags: number = DEFAULT,
  ): void {
    const operation = 'ep.postFetchAdd';
    this.traceRequest(operation, result, cookie, remote, flags);
    checkU64(operation, 'add', add);
    const opcode = WrOpcode.ATOMIC_FETCH_AND_ADD;
    this.atomic(operation, opcode, result, cookie, remote, add, 0n, flags);
  }

  /**
   * Posts an atomic compare-and-swap of 64 bits of the peer's memory (dat_ib_post_cmp_and_swap):
   * `swap` replaces what equals `compare`. The old value comes back into `result`, so that equal
   * says success.
   * @param result 8 bytes, with LOCAL_WRITE
   * @param remote a multiple of 8; the peer's region needs REMOTE_ATOMIC
   * @param compare u64
   * @param swap u64
   * @throws DatError as `postFetchAdd`
   */
  postCompareSwap(
    result: LmrSegment,
    cookie: number,
    remote: RemoteSegment | RemoteAddress,
    compare: bigint,
    swap: bigint,
    flags: number = DEFAULT,
  ): void {
    const operation = 'ep.postCompareSwap';
    this.traceRequest(operation, result, cookie, remote, flags);
    checkU64(operation, 'compare', compare);
    checkU64(operation, 'swap', swap);
    const opcode = WrOpcode.ATOMIC_CMP_AND_SWP;
    this.atomic(operation, opcode, result, cookie, remote, compare, swap, flags);
  }

  private atomic(
    operation: string,
    opcode: number,
    result: LmrSegment,
    cookie: number,
    remote: RemoteSegment | RemoteAddress,
    compareAdd: bigint,
    swap: bigint,
    flags: number,
  ): void {
    this.checkCapability(operation, 'atomic');
    this.checkRequest(operation, cookie, flags, RDMA_FLAGS);
    this.checkInitiator(operation);
    const write = MemPrivileges.LOCAL_WRITE;
    const bytes = checkSegments(operation, result, this.pz, write, 1, MAX_U32);
    if (bytes !== ATOMIC_BYTES) {
      const position = positionOf(operation, 'segments');
      throw invalid(operation, position, 'the length of result', bytes, `${ATOMIC_BYTES} bytes`);
    }
    const target = remoteSegment(operation, remote);
    const { addressLo: lo, addressHi: hi, rmrContext } = target;
    if ((lo & (ATOMIC_BYTES - 1)) !== 0) {
      const position = positionOf(operation, 'remote');
      throw invalid(operation, position, 'remote.address', target.address, 'a multiple of 8');
    }
    if (this.queues.sendsFull) this.makeRoom(operation, true);
    operands[0] = compareAdd;
    operands[1] = swap;
    this.queues.putOperands(operandWords);
    this.post(operation, opcode, 0, result, cookie, flags, lo, hi, rmrContext, 0, 0);
    this.queues.counters.posted(opcode, ATOMIC_BYTES);
  }
}
