/**
 * Endpoint (dat_ep): one side of a connection. Requests and receives are posted synchronously and
 * complete as events; connecting and disconnecting is asynchronous, as in DAT: calls return at once
 * and events follow on the connect EVD.
 */
import type { ConnectionEvent, DatEvent } from '../../evd/index.js';
import type { Observable } from '../../stream/index.js';
import { type CloseFlag, CompletionFlags } from '../common/constants.js';
import { checkReset, checkValue } from '../../errors/guards.js';
import { FUNCTION, showAs } from '../../spi/checks/index.js';
import { type Callee, checkHandle, HANDLE, nextHandleId } from '../common/handle.js';
import type { AdapterState } from '../common/adapter-state.js';
import type { Pz } from '../memory/pz.js';
import type { RmrTriplet } from '../memory/rmr-contexts.js';
import type { LmrSegment, RemoteAddress, RemoteSegment, Segments } from '../memory/segment.js';
import type { Srq } from '../srq/srq.js';
import { burst } from '../work/post-checks.js';
import { NOWHERE, postAtomic, postReadToRmr, postReceive, postRequest } from '../work/requests.js';
import * as requests from '../work/request-specs.js';
import type { EpAttributes } from './attributes.js';
import { breakReason } from '../work/break-causes.js';
import {
  checkCommonAddress,
  checkConnectOptions,
  checkDupOptions,
  type CommonAddress,
  type ConnectOptions,
  type DupConnectOptions,
} from './connect-options.js';
import { beginConnect, connect, connectLike, disconnect } from './connecting.js';
import type { EpCounterValues } from '../work/counters.js';
import {
  destroy,
  epFacts,
  getStatus,
  keepProcess,
  modify,
  query,
  recvQuery,
  reset,
  setWatermark,
} from './lifecycle.js';
import type { ModifyOptions } from './modify.js';
import { EndpointState } from './endpoint-state.js';
import type { EpStateName } from './states.js';
import type { EpInit, EpParameters, EpReceives, EpStatus } from './types.js';
import type { Ia } from '../ia/ia.js';

const { DEFAULT } = CompletionFlags;

/** Made by `ia.createEndpoint()`. */
export class Ep implements Callee {
  static {
    showAs(this, 'Ep', ({ record }) => epFacts(record));
  }

  readonly handleType = 'EP';
  readonly id = nextHandleId();
  consumerContext: unknown = undefined;
  /** @internal */
  readonly record: EndpointState;

  /** @internal */
  constructor(core: AdapterState, init: EpInit) {
    this.record = new EndpointState(this, core, init);
  }

  get [HANDLE](): 'EP' {
    return this.handleType;
  }

  get isFreed(): boolean {
    return this.freedBy !== undefined;
  }

  /** @internal */
  get freedBy(): string | undefined {
    return this.record.freedBy;
  }

  /** @internal */
  get core(): AdapterState {
    return this.record.core;
  }

  get ia(): Ia {
    return this.core.ia;
  }

  get attributes(): EpAttributes {
    return this.record.attributes;
  }

  /** A failure still in a completion queue counts (see `query`). */
  get state(): EpStateName {
    return this.record.state;
  }

  get pz(): Pz {
    return this.record.init.pz;
  }

  /** The shared receive queue that it was made with. */
  get srq(): Srq | undefined {
    return this.record.init.srq;
  }

  /** Queue pair number; another one after each reset. */
  get qpn(): number {
    return this.record.queues.qp.qpn;
  }

  /** Requests that can be posted before the queue is full. */
  get requestsFree(): number {
    return this.record.queues.sends.free;
  }

  /** Receives that can be posted before the queue is full; 0 with a shared receive queue. */
  get receivesFree(): number {
    return this.record.queues.receives.free;
  }

  /**
   * Starts to connect (dat_ep_connect). The outcome is an event on the connect EVD: ESTABLISHED,
   * PEER_REJECTED, NON_PEER_REJECTED, UNREACHABLE, TIMED_OUT.
   * @throws DatError DAT_INVALID_STATE unless UNCONNECTED; DAT_INVALID_ADDRESS;
   * DAT_INVALID_PARAMETER; DAT_MODEL_NOT_SUPPORTED (QoS, multipath; `serviceId` where the CM knows
   * ports only)
   */
  connect(options: ConnectOptions): void {
    beginConnect(this.record, 'ep.connect', {
      address: options?.address,
      connQual: options?.connQual,
      serviceId: options?.serviceId,
      timeoutMs: options?.timeoutMs,
    });
    connect(this.record, 'ep.connect', checkConnectOptions('ep.connect', options));
  }

  /**
   * Starts to connect to the target of a connected endpoint (dat_ep_dup_connect): the same address
   * and connection qualifier. The outcome is an event, as with `connect`.
   * @param connected an endpoint of this adapter that connected by itself
   * @throws DatError as `connect`; DAT_INVALID_STATE when `connected` is not CONNECTED;
   * DAT_INVALID_HANDLE; DAT_INVALID_PARAMETER when it accepted its connection: the peer then
   * listens nowhere that we know
   */
  dupConnect(connected: Ep, options: DupConnectOptions = {}): void {
    beginConnect(this.record, 'ep.dupConnect', { connected, timeoutMs: options?.timeoutMs });
    checkHandle('ep.dupConnect', Ep, 'EP', connected, this.core);
    connectLike(this.record, connected.record, options);
  }

  /**
   * Starts to connect by one address with port (dat_ep_common_connect): the text `192.0.2.2:7471`
   * or `[2001:db8::2]:7471`, or an AddressInfo as of `net`. The outcome is an event, as with
   * `connect`.
   * @throws DatError as `connect`
   */
  commonConnect(address: CommonAddress, options: DupConnectOptions = {}): void {
    const fields = { address, timeoutMs: options?.timeoutMs };
    const operation = beginConnect(this.record, 'ep.commonConnect', fields);
    const target = checkCommonAddress(operation, address);
    const rest = checkDupOptions(operation, options, target.service);
    connect(this.record, operation, { ...target, ...rest });
  }

  /**
   * Ends the connection (dat_ep_disconnect); DISCONNECTED follows on the connect EVD. No-op in
   * DISCONNECTED, and `graceful` also in DISCONNECT_PENDING.
   * @param flag `graceful` lets posted requests finish first; `abrupt` (default) flushes them
   * @throws DatError DAT_INVALID_STATE when there is nothing to disconnect
   */
  disconnect(flag: CloseFlag = 'abrupt'): void {
    disconnect(this.record, flag);
  }

  /**
   * Makes a disconnected endpoint usable again (dat_ep_reset) with a fresh queue pair number.
   * Completions that have arrived stay until they are dequeued, with the event of the end in its
   * place among them. A request or receive that the device has not flushed yet (see `getStatus`) is
   * lost. No-op in UNCONNECTED.
   * @throws DatError DAT_INVALID_STATE in any other state
   */
  reset(): void {
    reset(this.record);
  }

  /**
   * Changes parameters of the endpoint (dat_ep_modify). The table in modify.ts says which field may
   * be changed in which state. Posted receives stay posted; under another zone they complete with a
   * protection error when a message takes them.
   * @throws DatError DAT_INVALID_PARAMETER for a field that is read-only, or a value out of range;
   * DAT_INVALID_STATE for a field that cannot be changed in this state; DAT_INVALID_HANDLE;
   * DAT_MODEL_NOT_SUPPORTED. Nothing has changed then.
   */
  modify(options: ModifyOptions): void {
    modify(this.record, options);
  }

  /**
   * Frees the endpoint (dat_ep_free); a connection is ended abruptly, without an event. Completions
   * that are not dequeued are dropped: `evd.query().dropped` counts them.
   * @throws DatError DAT_INVALID_STATE while a service point or a connection request holds it
   */
  free(): void {
    this.record.begin('ep.free');
    this.record.checkLegal('ep.free', 'free');
    this.shutdown();
    this.record.takeInCompletions();
    this.destroy('ep.free');
  }

  /** Lets connecting, and consumers of its own EVDs, keep the process alive: the default. */
  ref(): this {
    keepProcess(this.record, true);
    return this;
  }

  /**
   * Lets the process exit while it connects, or while events of its own EVDs (`connection$`,
   * `completions$`) are awaited, as `unref` of node:net. An EVD that was given has its own `unref`.
   */
  unref(): this {
    keepProcess(this.record, false);
    return this;
  }

  /** True if connecting, and consumers of its own EVDs, keep the process alive. */
  hasRef(): boolean {
    return this.record.connection.hasRef;
  }

  [Symbol.dispose](): void {
    if (!this.isFreed) this.free();
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
    postRequest(this.record, requests.SEND, segments, cookie, NOWHERE, flags, 0);
  }

  /**
   * Posts a send that also invalidates a remote context at the peer
   * (dat_ep_post_send_with_invalidate): when the peer's receive completes, nothing reaches its
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
    const request = requests.SEND_WITH_INVALIDATE;
    postRequest(this.record, request, segments, cookie, NOWHERE, flags, rmrContext);
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
    postReceive(this.record, segments, cookie, flags);
  }

  /**
   * Posts an RDMA write (dat_ep_post_rdma_write): the peer's program is not involved.
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
    postRequest(this.record, requests.RDMA_WRITE, segments, cookie, remote, flags, 0);
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
    postRequest(this.record, requests.RDMA_READ, segments, cookie, remote, flags, 0);
  }

  /**
   * Posts an RDMA read whose sink is named by a remote context of our own
   * (dat_ep_post_rdma_read_to_rmr). iWARP works that way: a sink is memory that a peer may write
   * to. The context is looked up when the read is posted; a later rebind of the RMR does not move
   * it.
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
    postReadToRmr(this.record, sink, cookie, remote, flags);
  }

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
    const request = requests.SEND_WITH_IMMEDIATE;
    postRequest(this.record, request, segments, cookie, NOWHERE, flags, immediate);
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
    const request = requests.RDMA_WRITE_WITH_IMMEDIATE;
    postRequest(this.record, request, segments, cookie, remote, flags, immediate);
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
    postAtomic(this.record, requests.FETCH_ADD, result, cookie, remote, flags, add, 0n);
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
    postAtomic(this.record, requests.COMPARE_SWAP, result, cookie, remote, flags, compare, swap);
  }

  /**
   * Posts everything that `work` posts on this endpoint with one doorbell per queue, also when
   * `work` throws. Of many requests, each 32 get a doorbell, so that the device works on them while
   * `work` posts the next. Bursts nest; the outermost rings.
   */
  burst(work: () => void): void {
    this.record.assertLive('ep.burst');
    checkValue('ep.burst', 'work', work, FUNCTION);
    burst('ep.burst', this.record.queues, work);
  }

  /**
   * All parameters of the endpoint (dat_ep_query). Scans completions first, so that a connection
   * that has failed is DISCONNECTED, and BROKEN is queued.
   */
  query(): EpParameters {
    return query(this.record);
  }

  /**
   * A snapshot (dat_ep_get_status), after a scan of completions. A suppressed request counts until
   * a later one has completed: nothing reports its end before.
   */
  getStatus(): EpStatus {
    return getStatus(this.record);
  }

  /**
   * Receive buffers that are allocated to the endpoint and not completed (dat_ep_recv_query). Of
   * its own queue, the posted ones; of a shared queue, those taken by messages that are still
   * arriving. A reliable connection takes them in the order of the messages, one at a time. So of a
   * shared queue it holds 1 at most, and the span is their number.
   */
  recvQuery(): EpReceives {
    return recvQuery(this.record);
  }

  /**
   * High watermarks of the receive buffers that `recvQuery` counts (dat_ep_set_watermark). More
   * than `soft` is reported once per setting: an asynchronous error that names the endpoint, with
   * the reason `AsyncErrorReason.EP.SRQ_SOFT_HIGH_WATERMARK`. More than `hard` breaks the
   * connection.
   * A mark that is already passed reports, or breaks, at once.
   * @param soft 0 or more; Infinity (DAT_WATERMARK_INFINITE) disarms it
   * @param hard the same
   * @throws DatError DAT_INVALID_PARAMETER
   */
  setWatermark(soft: number, hard = Infinity): void {
    setWatermark(this.record, soft, hard);
  }

  /**
   * Counts of posts and receives (dat_ib_query_counters on an endpoint), across resets of the
   * endpoint.
   * @param options `reset`: the counters begin again at 0; what was counted is returned
   * @throws DatError DAT_INVALID_PARAMETER
   */
  counters(options: { readonly reset?: boolean } = {}): EpCounterValues {
    this.record.begin('ep.counters', { reset: options?.reset });
    return this.record.counts.read(checkReset('ep.counters', options));
  }

  /** Last transitions of endpoint and queue pair, and messages of the CM, for people. */
  flightRecord(): readonly string[] {
    return this.record.connection.flightRecord();
  }

  /**
   * Connection events, when the endpoint was made without a connect EVD. One subscriber.
   * @throws DatError DAT_INVALID_STATE when there is an EVD: use its `events$`
   */
  get connection$(): Observable<ConnectionEvent> {
    const { events, init } = this.record;
    return events.stream<ConnectionEvent>('ep.connection$', init.connectEvd);
  }

  /**
   * DTO completions of receives, requests or both: those without an EVD of the consumer's. One
   * subscriber.
   * @throws DatError DAT_INVALID_STATE when there are EVDs for both: use their `events$`
   */
  get completions$(): Observable<DatEvent> {
    const { events, init } = this.record;
    return events.stream<DatEvent>('ep.completions$', init.requestEvd, init.recvEvd);
  }

  /**
   * The state, now and whenever it changes; completes when the endpoint is freed. While it has a
   * subscriber, failures are scanned for, even if nothing takes the endpoint's events.
   */
  get state$(): Observable<EpStateName> {
    return this.record.events.statesFrom(this.state);
  }

  /** @internal the device is gone */
  onDeviceGone(reason: string): void {
    this.record.connection.onQueuePairError(breakReason('DEVICE', reason));
  }

  /** @internal teardown, first part: the CM tells the peer */
  shutdown(): void {
    this.record.connection.shutdown();
  }

  /** @internal teardown, second part */
  destroy(by: string): void {
    destroy(this.record, by);
  }
}
