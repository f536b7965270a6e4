/**
 * The data path of an endpoint: DAT's own posting calls. Each checks its parameters, writes words
 * into a ring and rings a doorbell; nothing is allocated unless something is wrong. Those of the IB
 * extensions are in ib-posts.ts.
 */
import { WrFlags, WrOpcode } from '../../spi/index.js';
import { CompletionFlags, flagNames, MemPrivileges } from '../common/constants.js';
import { countOf, EpPoster, remoteSegment } from './poster.js';
import { checkBits } from '../common/guards.js';
import { positionOf } from './post-arguments.js';
import { checkCookie, checkSegments, checkU32 } from './post-checks.js';
import type { RmrTriplet } from '../memory/rmr-contexts.js';
import type { RemoteAddress, RemoteSegment, Segments } from '../memory/segment.js';
import { Slot } from './work-queue.js';

const { SUPPRESS, SOLICITED_WAIT, UNSIGNALLED, BARRIER_FENCE, DEFAULT } = CompletionFlags;
export const RDMA_FLAGS = SUPPRESS | BARRIER_FENCE;
export const SEND_FLAGS = RDMA_FLAGS | SOLICITED_WAIT;

const READ = MemPrivileges.LOCAL_READ;
const WRITE = MemPrivileges.LOCAL_WRITE;

/** The part of `Ep` that posts. */
export abstract class EpPosts extends EpPoster {
  /** Receives that can be posted before the queue is full; 0 with a shared receive queue. */
  get receivesFree(): number {
    return Math.max(0, this.queues.receives.limit - this.queues.receives.outstanding);
  }

  /**
   * Posts a send (dat_ep_post_send). The peer's oldest receive takes it.
   * @param segments what to send, gathered in order; an empty array is an empty message
   * @param cookie comes back in the event: an integer from 0 to 2^53 - 1
   * @param flags CompletionFlags: SUPPRESS, SOLICITED_WAIT, BARRIER_FENCE, and UNSIGNALLED where
   * the endpoint's `requestCompletionFlags` allow it
   * @throws DatError DAT_INVALID_STATE unless CONNECTED, COMPLETION_PENDING (it waits until the
   * connection is established) or DISCONNECTED (it is flushed); DAT_INSUFFICIENT_RESOURCES /
   * DAT_RESOURCE_CREDITS when `maxRequestDtos` requests are outstanding; DAT_PROTECTION_VIOLATION,
   * DAT_PRIVILEGES_VIOLATION (LOCAL_READ), DAT_LENGTH_ERROR, DAT_INVALID_HANDLE (freed region),
   * DAT_INVALID_PARAMETER
   */
  postSend(segments: Segments, cookie = 0, flags: number = DEFAULT): void {
    this.traceRequest('ep.postSend', segments, cookie, undefined, flags);
    this.send('ep.postSend', WrOpcode.SEND, segments, cookie, flags, 0);
  }

  /**
   * Posts a send that also invalidates a remote context at the peer
   * (dat_ep_post_send_with_invalidate): when the peer's receive completes, nobody reaches its
   * memory by that context any more. The event of that receive names it.
   * @param rmrContext the peer's, u32: of an RMR that is bound, as the peer told it
   * @throws DatError as `postSend`; DAT_MODEL_NOT_SUPPORTED where the device cannot. A context that
   * the peer does not know, or that is not to be invalidated by this connection, breaks it: the
   * request completes as REMOTE_RESPONDER or REMOTE_ACCESS
   */
  postSendWithInvalidate(
    segments: Segments,
    cookie: number,
    rmrContext: number,
    flags: number = DEFAULT,
  ): void {
    const operation = 'ep.postSendWithInvalidate';
    this.traceRequest(operation, segments, cookie, undefined, flags);
    this.checkCapability(operation, 'send-with-invalidate');
    checkU32(operation, 'rmrContext', rmrContext);
    this.send(operation, WrOpcode.SEND_WITH_INV, segments, cookie, flags, rmrContext);
  }

  /**
   * Posts a receive (dat_ep_post_recv). Legal in every state; flushed at once in DISCONNECTED.
   * @param segments where the next message goes, scattered in order
   * @param cookie comes back in the event: an integer from 0 to 2^53 - 1
   * @param flags UNSIGNALLED where the endpoint's `recvCompletionFlags` allow it
   * @throws DatError DAT_INSUFFICIENT_RESOURCES / DAT_RESOURCE_CREDITS when `maxRecvDtos` receives
   * are outstanding; DAT_INVALID_STATE / DAT_INVALID_STATE_SRQ_IN_USE with a shared receive queue:
   * post to that; DAT_PRIVILEGES_VIOLATION (LOCAL_WRITE) and the rest as `postSend`
   */
  postRecv(segments: Segments, cookie = 0, flags: number = DEFAULT): void {
    const operation = 'ep.postRecv';
    const trace = this.core.context.trace;
    trace?.(operation, { ep: this.id, segments: countOf(segments), cookie });
    this.assertLive(operation);
    this.checkPost(operation, 'postReceive');
    checkCookie(operation, cookie);
    const { maxRecvIov, recvCompletionFlags } = this.attributes;
    if (flags !== DEFAULT) {
      const mask = recvCompletionFlags & UNSIGNALLED;
      const position = positionOf(operation, 'flags');
      checkBits(operation, position, 'flags', flags, mask, flagNames(CompletionFlags, mask));
    }
    this.checkOwnReceives(operation);
    checkSegments(operation, segments, this.pz, WRITE, maxRecvIov, Infinity);
    if (this.queues.receivesFull) this.makeRoom(operation, false);
    this.queues.postReceive(segments, cookie, flags === DEFAULT ? 0 : Slot.QUIET);
    this.afterReceivePosted();
  }

  /**
   * Posts an RDMA write (dat_ep_post_rdma_write): the peer's memory changes without its doing.
   * @param segments what to write, gathered in order
   * @param remote where to; a RemoteSegment spares the bigint
   * @param flags CompletionFlags: SUPPRESS, BARRIER_FENCE, UNSIGNALLED as `postSend`
   * @throws DatError as `postSend`
   */
  postRdmaWrite(
    segments: Segments,
    cookie: number,
    remote: RemoteSegment | RemoteAddress,
    flags: number = DEFAULT,
  ): void {
    this.traceRequest('ep.postRdmaWrite', segments, cookie, remote, flags);
    const opcode = WrOpcode.RDMA_WRITE;
    this.write('ep.postRdmaWrite', opcode, RDMA_FLAGS, segments, cookie, remote, flags, 0);
  }

  /**
   * Posts an RDMA read (dat_ep_post_rdma_read) of as many bytes as the segments hold.
   * @param segments where to, scattered in order; needs LOCAL_WRITE
   * @param remote where from
   * @param flags CompletionFlags: SUPPRESS, BARRIER_FENCE, UNSIGNALLED as `postSend`
   * @throws DatError as `postSend`; DAT_INVALID_STATE when the connection allows no reads
   * (`maxRdmaReadOut` 0)
   */
  postRdmaRead(
    segments: Segments,
    cookie: number,
    remote: RemoteSegment | RemoteAddress,
    flags: number = DEFAULT,
  ): void {
    this.traceRequest('ep.postRdmaRead', segments, cookie, remote, flags);
    this.read('ep.postRdmaRead', segments, cookie, remote, flags);
  }

  /**
   * Posts an RDMA read whose sink is named by a remote context of our own
   * (dat_ep_post_rdma_read_to_rmr): the way of iWARP, where a sink is what a peer may write to. The
   * context is looked up when the read is posted; an RMR that is rebound later does not move it.
   * @param sink a part of a region or of a bound RMR of this adapter, in the endpoint's zone; the
   * region needs LOCAL_WRITE
   * @throws DatError as `postRdmaRead`; DAT_INVALID_PARAMETER for a context that is not ours, or a
   * part outside of what it opens
   */
  postRdmaReadToRmr(
    sink: RmrTriplet,
    cookie: number,
    remote: RemoteSegment | RemoteAddress,
    flags: number = DEFAULT,
  ): void {
    const operation = 'ep.postRdmaReadToRmr';
    this.traceRequest(operation, sink, cookie, remote, flags);
    this.assertLive(operation);
    const segment = this.core.rmrContexts.resolve(
      operation,
      positionOf(operation, 'segments'),
      sink,
    );
    this.read(operation, segment, cookie, remote, flags);
  }

  /** @throws DatError DAT_INVALID_STATE_SRQ_IN_USE when receives come from a shared queue */
  protected abstract checkOwnReceives(operation: string): void;

  /** A receive has been posted: a watermark may have been passed. */
  protected abstract afterReceivePosted(): void;

  protected send(
    operation: string,
    opcode: number,
    segments: Segments,
    cookie: number,
    flags: number,
    immediate: number,
  ): void {
    this.checkRequest(operation, cookie, flags, SEND_FLAGS);
    const { maxRequestIov, maxMessageBytes } = this.attributes;
    const bytes = checkSegments(operation, segments, this.pz, READ, maxRequestIov, maxMessageBytes);
    const solicited = (flags & SOLICITED_WAIT) === 0 ? 0 : WrFlags.SOLICITED;
    this.post(operation, opcode, solicited, segments, cookie, flags, 0, 0, 0, immediate, 0);
    this.queues.counters.posted(opcode, bytes);
  }

  protected write(
    operation: string,
    opcode: number,
    mask: number,
    segments: Segments,
    cookie: number,
    remote: RemoteSegment | RemoteAddress,
    flags: number,
    immediate: number,
  ): void {
    this.checkRequest(operation, cookie, flags, mask);
    const { maxRdmaWriteIov, maxRdmaBytes } = this.attributes;
    const bytes = checkSegments(operation, segments, this.pz, READ, maxRdmaWriteIov, maxRdmaBytes);
    const to = remoteSegment(operation, remote);
    const { addressLo: lo, addressHi: hi, rmrContext } = to;
    const solicited = (flags & SOLICITED_WAIT) === 0 ? 0 : WrFlags.SOLICITED;
    const slot = opcode === WrOpcode.RDMA_WRITE ? 0 : Slot.IMMEDIATE;
    this.post(
      operation,
      opcode,
      solicited,
      segments,
      cookie,
      flags,
      lo,
      hi,
      rmrContext,
      immediate,
      slot,
    );
    this.queues.counters.posted(opcode, bytes);
  }

  private read(
    operation: string,
    segments: Segments,
    cookie: number,
    remote: RemoteSegment | RemoteAddress,
    flags: number,
  ): void {
    this.checkRequest(operation, cookie, flags, RDMA_FLAGS);
    this.checkInitiator(operation);
    const { maxRdmaReadIov, maxRdmaBytes } = this.attributes;
    const bytes = checkSegments(operation, segments, this.pz, WRITE, maxRdmaReadIov, maxRdmaBytes);
    const from = remoteSegment(operation, remote);
    const { addressLo: lo, addressHi: hi, rmrContext } = from;
    this.post(operation, WrOpcode.RDMA_READ, 0, segments, cookie, flags, lo, hi, rmrContext, 0, 0);
    this.queues.counters.posted(WrOpcode.RDMA_READ, bytes);
  }
}
