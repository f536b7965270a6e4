/**
 * The data path of an endpoint: posting. Each call checks its parameters, writes words into a ring
 * and rings a doorbell; nothing is allocated unless something is wrong.
 */
import { DatError } from '../errors/index.js';
import { WrFlags, WrOpcode } from '../spi/index.js';
import { CompletionFlags, flagNames, MemPrivileges } from './constants.js';
import type { EpAttributes } from './ep-attributes.js';
import type { EpQueues } from './ep-queues.js';
import { EP_STATES, type EpCall, type EpStateName, type Legality } from './ep-states.js';
import { checkBits, invalid, isBitSet } from './guards.js';
import { DatHandle } from './handle.js';
import type { Ia } from './ia.js';
import { checkCookie, checkSegments } from './post-checks.js';
import type { Pz } from './pz.js';
import { checkRemote, type LmrSegment, type RemoteAddress, RemoteSegment } from './segment.js';
import type { Srq } from './srq.js';
import { Symbolic } from './trace.js';

type Segments = LmrSegment | readonly LmrSegment[];

const { SUPPRESS, SOLICITED_WAIT, BARRIER_FENCE, DEFAULT } = CompletionFlags;
const RDMA_FLAGS = SUPPRESS | BARRIER_FENCE;
const SEND_FLAGS = RDMA_FLAGS | SOLICITED_WAIT;

/** The part of `Ep` that posts. */
export abstract class EpPosts extends DatHandle {
  abstract readonly ia: Ia;
  abstract readonly attributes: EpAttributes;
  abstract readonly state: EpStateName;
  abstract readonly pz: Pz;
  abstract readonly srq: Srq | undefined;
  /** Of the present life: `ep.reset()` puts others in place. */
  protected abstract queues: EpQueues;

  /** Completions that have come become known. */
  protected abstract takeInCompletions(): void;

  /** Requests that can be posted before the queue is full. */
  get requestsFree(): number {
    return Math.max(0, this.queues.sends.limit - this.queues.sends.outstanding);
  }

  /** Receives that can be posted before the queue is full. */
  get receivesFree(): number {
    return Math.max(0, this.queues.receives.limit - this.queues.receives.outstanding);
  }

  /**
   * Posts a send (dat_ep_post_send). The peer's oldest receive takes it.
   * @param segments what to send, gathered in order; an empty array is an empty message
   * @param cookie comes back in the event: an integer from 0 to 2^53 - 1
   * @param flags CompletionFlags: SUPPRESS, SOLICITED_WAIT, BARRIER_FENCE
   * @throws DatError DAT_INVALID_STATE unless CONNECTED, COMPLETION_PENDING (it waits until the
   * connection is established) or DISCONNECTED (it is flushed); DAT_INSUFFICIENT_RESOURCES /
   * DAT_RESOURCE_CREDITS when `maxRequestDtos` requests are outstanding; DAT_PROTECTION_VIOLATION,
   * DAT_PRIVILEGES_VIOLATION (LOCAL_READ), DAT_LENGTH_ERROR, DAT_INVALID_HANDLE (freed region),
   * DAT_INVALID_PARAMETER
   */
  postSend(segments: Segments, cookie = 0, flags: number = DEFAULT): void {
    this.traceRequest('ep.postSend', segments, cookie, undefined, flags);
    const { pz, attributes } = this;
    this.checkRequest('ep.postSend', cookie, flags, SEND_FLAGS);
    const { maxRequestIov, maxMessageBytes } = attributes;
    checkSegments('ep.postSend', segments, pz, READ, maxRequestIov, maxMessageBytes);
    const wrFlags = (flags & SOLICITED_WAIT) === 0 ? 0 : WrFlags.SOLICITED;
    this.post(WrOpcode.SEND, wrFlags, segments, cookie, flags, 0, 0, 0);
  }

  /**
   * Posts a receive (dat_ep_post_recv). Legal in every state; flushed at once in DISCONNECTED.
   * @param segments where the next message goes, scattered in order
   * @param cookie comes back in the event: an integer from 0 to 2^53 - 1
   * @throws DatError DAT_INSUFFICIENT_RESOURCES / DAT_RESOURCE_CREDITS when `maxRecvDtos` receives
   * are outstanding; DAT_PRIVILEGES_VIOLATION (LOCAL_WRITE) and the rest as `postSend`
   */
  postRecv(segments: Segments, cookie = 0, flags: number = DEFAULT): void {
    const trace = this.ia.context.trace;
    trace?.('ep.postRecv', { ep: this.id, segments: countOf(segments), cookie });
    this.assertLive('ep.postRecv');
    this.checkLegal('ep.postRecv', 'postReceive');
    if (this.srq !== undefined) throw refuseShared(this.srq);
    checkCookie('ep.postRecv', cookie);
    if (flags !== DEFAULT) throw invalid('ep.postRecv', 3, 'flags', flags, 'DEFAULT');
    const { maxRecvIov } = this.attributes;
    checkSegments('ep.postRecv', segments, this.pz, WRITE, maxRecvIov, Infinity);
    if (this.queues.receivesFull) this.makeRoom('ep.postRecv', false);
    this.queues.postReceive(segments, cookie);
  }

  /**
   * Posts an RDMA write (dat_ep_post_rdma_write): the peer's memory changes without its doing.
   * @param segments what to write, gathered in order
   * @param remote where to; a RemoteSegment spares the bigint
   * @param flags CompletionFlags: SUPPRESS, BARRIER_FENCE
   * @throws DatError as `postSend`
   */
  postRdmaWrite(
    segments: Segments,
    cookie: number,
    remote: RemoteSegment | RemoteAddress,
    flags: number = DEFAULT,
  ): void {
    this.traceRequest('ep.postRdmaWrite', segments, cookie, remote, flags);
    const { pz, attributes } = this;
    this.checkRequest('ep.postRdmaWrite', cookie, flags, RDMA_FLAGS);
    const { maxRdmaWriteIov, maxRdmaBytes } = attributes;
    checkSegments('ep.postRdmaWrite', segments, pz, READ, maxRdmaWriteIov, maxRdmaBytes);
    const to = remoteSegment('ep.postRdmaWrite', remote);
    const { addressLo, addressHi, rmrContext } = to;
    this.post(WrOpcode.RDMA_WRITE, 0, segments, cookie, flags, addressLo, addressHi, rmrContext);
  }

  /**
   * Posts an RDMA read (dat_ep_post_rdma_read) of as many bytes as the segments hold.
   * @param segments where to, scattered in order; needs LOCAL_WRITE
   * @param remote where from
   * @param flags CompletionFlags: SUPPRESS, BARRIER_FENCE
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
    const { pz, attributes } = this;
    this.checkRequest('ep.postRdmaRead', cookie, flags, RDMA_FLAGS);
    const { maxRdmaReadIov, maxRdmaBytes, maxRdmaReadOut } = attributes;
    if (maxRdmaReadOut === 0) {
      throw new DatError('DAT_INVALID_STATE', {
        operation: 'ep.postRdmaRead',
        message: 'the endpoint was made with maxRdmaReadOut 0: it may not issue reads',
        value: 0,
      });
    }
    checkSegments('ep.postRdmaRead', segments, pz, WRITE, maxRdmaReadIov, maxRdmaBytes);
    const from = remoteSegment('ep.postRdmaRead', remote);
    const { addressLo, addressHi, rmrContext } = from;
    this.post(WrOpcode.RDMA_READ, 0, segments, cookie, flags, addressLo, addressHi, rmrContext);
  }

  /**
   * Everything that `work` posts on this endpoint leaves with one doorbell per queue, also when
   * `work` throws. Bursts nest; the outermost rings.
   */
  burst(work: () => void): void {
    this.assertLive('ep.burst');
    if (typeof work !== 'function') throw invalid('ep.burst', 1, 'work', work, 'a function');
    const { queues } = this;
    queues.beginBurst();
    try {
      work();
    } finally {
      queues.endBurst();
    }
  }

  protected checkLegal(operation: string, call: EpCall): Legality {
    const { subtype, calls } = EP_STATES[this.state];
    const legality = calls[call];
    if (legality !== 'illegal') return legality;
    throw new DatError('DAT_INVALID_STATE', {
      subtype,
      operation,
      message: `endpoint ${this.id} is ${this.state}`,
      value: this.state,
    });
  }

  private checkRequest(operation: string, cookie: number, flags: number, mask: number): void {
    this.assertLive(operation);
    this.checkLegal(operation, 'postRequest');
    checkCookie(operation, cookie);
    if (isBitSet(flags, mask)) return;
    checkBits(operation, 4, 'flags', flags, mask, `of ${flagNames(CompletionFlags, mask)}`);
  }

  private post(
    opcode: number,
    wrFlags: number,
    segments: Segments,
    cookie: number,
    flags: number,
    addressLo: number,
    addressHi: number,
    rkey: number,
  ): void {
    if (this.queues.sendsFull) this.makeRoom('ep.post', true);
    const fence = (flags & BARRIER_FENCE) === 0 ? 0 : WrFlags.FENCE;
    this.queues.postRequest(
      opcode,
      wrFlags | fence,
      (flags & SUPPRESS) !== 0,
      segments,
      cookie,
      addressLo,
      addressHi,
      rkey,
    );
  }

  /** The queue looks full: perhaps completions wait to be taken in. */
  private makeRoom(operation: string, request: boolean): void {
    this.takeInCompletions();
    const full = request ? this.queues.sendsFull : this.queues.receivesFull;
    if (!full) return;
    const limit = request ? this.attributes.maxRequestDtos : this.attributes.maxRecvDtos;
    throw new DatError('DAT_INSUFFICIENT_RESOURCES', {
      subtype: 'DAT_RESOURCE_CREDITS',
      operation,
      message: `${limit} ${request ? 'requests' : 'receives'} are outstanding: the queue is full`,
      hint: 'wait for completions, or ask for more in the endpoint attributes',
      value: limit,
    });
  }

  private traceRequest(
    call: string,
    segments: Segments,
    cookie: number,
    remote: RemoteAddress | undefined,
    flags: number,
  ): void {
    const { trace } = this.ia.context;
    if (trace === undefined) return;
    trace(call, {
      ep: this.id,
      segments: countOf(segments),
      cookie,
      remote: remoteText(remote),
      flags: new Symbolic(flagNames(CompletionFlags, flags)),
    });
  }
}

const READ = MemPrivileges.LOCAL_READ;
const WRITE = MemPrivileges.LOCAL_WRITE;

function refuseShared(srq: Srq): DatError {
  return new DatError('DAT_INVALID_STATE', {
    subtype: 'DAT_INVALID_STATE_SRQ_IN_USE',
    operation: 'ep.postRecv',
    message: `the endpoint receives from shared receive queue ${srq.id}`,
    hint: 'use srq.postRecv()',
    value: srq,
  });
}

function remoteSegment(operation: string, remote: RemoteSegment | RemoteAddress): RemoteSegment {
  if (remote instanceof RemoteSegment) return remote;
  checkRemote(operation, 3, remote);
  return new RemoteSegment(remote);
}

function countOf(segments: unknown): number {
  return Array.isArray(segments) ? segments.length : 1;
}

/** Traces are written before parameters are checked. */
function remoteText(remote: RemoteAddress | undefined): Symbolic | undefined {
  const address: unknown = remote?.address;
  return typeof address === 'bigint' ? new Symbolic(`0x${address.toString(16)}`) : undefined;
}
