/**
 * Endpoint (dat_ep): one side of a connection. Requests and receives are posted synchronously and
 * complete as events; connecting and disconnecting is asynchronous, as in DAT: calls return at once
 * and events follow on the connect EVD.
 */
import { inspect } from 'node:util';
import type { Observable } from '../stream/index.js';
import type { ConnectionEvent, DatEvent, Evd } from '../evd/index.js';
import { DatError, spiCall } from '../errors/index.js';
import {
  type CmRequest,
  ipFromGid,
  PortSpace,
  serviceIdOf,
  WrFlags,
  WrOpcode,
} from '../spi/index.js';
import { type CloseFlag, CompletionFlags, flagNames, MemPrivileges } from './constants.js';
import type { EpAttributes } from './ep-attributes.js';
import { checkConnectOptions, type ConnectOptions } from './ep-connect-options.js';
import { EpConnection } from './ep-connection.js';
import { isRequestGone } from './ep-outcomes.js';
import { EpEvents } from './ep-events.js';
import { EP_ACCESS, EpQueues } from './ep-queues.js';
import { EP_STATES, type EpCall, EpState, type EpStateName, type Legality } from './ep-states.js';
import { checkBits, checkOneOf, invalid } from './guards.js';
import { DatHandle } from './handle.js';
import type { Ia } from './ia.js';
import { checkCookie, checkSegments } from './post-checks.js';
import type { Pz } from './pz.js';
import { checkRemote, type LmrSegment, type RemoteAddress, RemoteSegment } from './segment.js';
import { Symbolic } from './trace.js';

type Segments = LmrSegment | readonly LmrSegment[];

const { SUPPRESS, SOLICITED_WAIT, BARRIER_FENCE, DEFAULT } = CompletionFlags;
const RDMA_FLAGS = SUPPRESS | BARRIER_FENCE;
const SEND_FLAGS = RDMA_FLAGS | SOLICITED_WAIT;

/** What an endpoint is made of: the event dispatchers are there, given or private. */
export interface EpInit {
  readonly pz: Pz;
  readonly recvEvd: Evd;
  readonly requestEvd: Evd;
  readonly connectEvd: Evd;
  /** The private ones of these, offered as streams and freed with the endpoint. */
  readonly privateEvds: readonly Evd[];
  readonly attributes: EpAttributes;
}

/** What `ep.query()` tells. */
export interface EpParameters {
  readonly ia: Ia;
  readonly state: EpStateName;
  /** DAT_EP_STATE. */
  readonly stateNumber: number;
  readonly pz: Pz;
  readonly recvEvd: Evd;
  readonly requestEvd: Evd;
  readonly connectEvd: Evd;
  readonly attributes: EpAttributes;
  readonly localAddress: string;
  /** Of the present or last connection. */
  readonly remoteAddress: string | undefined;
  /** Queue pair number; another one after each reset. */
  readonly qpn: number;
}

/** What `ep.getStatus()` tells. */
export interface EpStatus {
  readonly state: EpStateName;
  /** No receive (no request) is outstanding, as far as completions have been taken in. */
  readonly recvIdle: boolean;
  readonly requestIdle: boolean;
}

/** Made by `ia.createEndpoint()`. */
export class Ep extends DatHandle {
  readonly handleType = 'EP';
  readonly attributes: EpAttributes;
  private queues: EpQueues;
  private readonly connection: EpConnection;
  private readonly events: EpEvents;

  /** @internal */
  constructor(
    readonly ia: Ia,
    private readonly init: EpInit,
  ) {
    super();
    this.attributes = init.attributes;
    this.events = new EpEvents(this, ia, init);
    try {
      this.events.attach((reason) => this.connection.onCompletionsLost(reason));
      this.queues = this.createQueues();
    } catch (error) {
      this.events.close();
      throw error;
    }
    const queues = (): EpQueues => this.queues;
    this.connection = new EpConnection({
      keepAlive: ia.context.keepAlive,
      get queues() {
        return queues();
      },
      post: (name, details, before) => this.events.post(name, details, before),
      postBrokenAsync: (reason) => this.events.postBrokenAsync(reason),
      watchCompletions: (watch) => this.events.watchCompletions(watch),
      onTransition: (from, to) => this.events.onTransition(from, to),
      nowUs: () => ia.context.clock.now(),
    });
    init.pz.users++;
  }

  get state(): EpStateName {
    return this.connection.state;
  }

  get pz(): Pz {
    return this.init.pz;
  }

  /** Queue pair number; another one after each reset. */
  get qpn(): number {
    return this.queues.qp.qpn;
  }

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
   * connection is established) or DISCONNECTED (it is flushed);
   * DAT_INSUFFICIENT_RESOURCES / DAT_RESOURCE_CREDITS when `maxRequestDtos` requests are outstanding;
   * DAT_PROTECTION_VIOLATION, DAT_PRIVILEGES_VIOLATION (LOCAL_READ), DAT_LENGTH_ERROR,
   * DAT_INVALID_HANDLE (freed region), DAT_INVALID_PARAMETER
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
   * @throws DatError DAT_INSUFFICIENT_RESOURCES / DAT_RESOURCE_CREDITS when `maxRecvDtos` receives are
   * outstanding; DAT_PRIVILEGES_VIOLATION (LOCAL_WRITE) and the rest as `postSend`
   */
  postRecv(segments: Segments, cookie = 0, flags: number = DEFAULT): void {
    const trace = this.ia.context.trace;
    trace?.('ep.postRecv', { ep: this.id, segments: countOf(segments), cookie });
    this.assertLive('ep.postRecv');
    this.checkLegal('ep.postRecv', 'postReceive');
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
   * Everything that `work` posts on this endpoint leaves with one doorbell per queue, also when `work`
   * throws. Bursts nest; the outermost rings.
   */
  burst(work: () => void): void {
    this.assertLive('ep.burst');
    const { queues } = this;
    queues.beginBurst();
    try {
      work();
    } finally {
      queues.endBurst();
    }
  }

  /**
   * Starts to connect (dat_ep_connect). The outcome is an event on the connect EVD: ESTABLISHED,
   * PEER_REJECTED, NON_PEER_REJECTED, UNREACHABLE, TIMED_OUT.
   * @throws DatError DAT_INVALID_STATE unless UNCONNECTED; DAT_INVALID_ADDRESS; DAT_INVALID_PARAMETER
   */
  connect(options: ConnectOptions): void {
    this.ia.context.trace?.('ep.connect', {
      ep: this.id,
      address: options?.address,
      connQual: options?.connQual,
      timeoutMs: options?.timeoutMs,
    });
    this.assertLive('ep.connect');
    this.checkLegal('ep.connect', 'connect');
    const { remoteGid, port, timeoutUs, privateData } = checkConnectOptions(options);
    const { ackTimeout, pathMtuBytes } = this.attributes.transport;
    const { cm } = this.ia.context;
    spiCall({ operation: 'ep.connect', value: options.address }, () =>
      this.connection.connect((onEvent) =>
        cm.connect({
          ...this.cmParameters(),
          qp: this.queues.qp,
          remoteGid,
          serviceId: serviceIdOf(PortSpace.TCP, port),
          privateData,
          timeoutUs,
          ackTimeout,
          pathMtuBytes,
          onEvent,
        }),
      ),
    );
  }

  /** @internal `cr.accept` */
  accept(request: CmRequest, privateData: Uint8Array): void {
    const own = this.cmParameters();
    const parameters = {
      ...own,
      responderResources: Math.min(own.responderResources, request.responderResources),
      initiatorDepth: Math.min(own.initiatorDepth, request.initiatorDepth),
      qp: this.queues.qp,
      privateData,
    };
    try {
      this.connection.accept((onEvent) => request.accept({ ...parameters, onEvent }));
    } catch (error) {
      if (!isRequestGone(error)) throw error;
      this.connection.acceptFailed('the peer gave up before it was answered');
    }
  }

  /**
   * Ends the connection (dat_ep_disconnect); DISCONNECTED follows on the connect EVD. No-op in
   * DISCONNECTED.
   * @param flag `graceful` lets posted requests finish first; `abrupt` (default) flushes them
   * @throws DatError DAT_INVALID_STATE when there is nothing to disconnect; `graceful` also in
   * DISCONNECT_PENDING
   */
  disconnect(flag: CloseFlag = 'abrupt'): void {
    this.ia.context.trace?.('ep.disconnect', { ep: this.id, flag: new Symbolic(String(flag)) });
    this.assertLive('ep.disconnect');
    checkOneOf('ep.disconnect', 2, 'flag', flag, ['abrupt', 'graceful']);
    const call = flag === 'graceful' ? 'disconnectGraceful' : 'disconnectAbrupt';
    if (this.checkLegal('ep.disconnect', call) === 'no-op') return;
    this.connection.disconnect(flag === 'graceful');
  }

  /**
   * Makes a disconnected endpoint usable again (dat_ep_reset) with a fresh queue pair number; posted
   * receives are gone, and so are completions that nobody has dequeued. No-op in UNCONNECTED.
   * @throws DatError DAT_INVALID_STATE in any other state
   */
  reset(): void {
    this.ia.context.trace?.('ep.reset', { ep: this.id });
    this.assertLive('ep.reset');
    if (this.checkLegal('ep.reset', 'reset') === 'no-op') return;
    const next = this.createQueues();
    this.connection.reset();
    this.destroyQueues('ep.reset');
    this.queues = next;
  }

  /**
   * Frees the endpoint (dat_ep_free); a connection is ended abruptly, without an event.
   * @throws DatError DAT_INVALID_STATE while a connection request holds it
   */
  free(): void {
    this.ia.context.trace?.('ep.free', { ep: this.id });
    this.assertLive('ep.free');
    this.checkLegal('ep.free', 'free');
    this.shutdown();
    this.destroy('ep.free');
  }

  [Symbol.dispose](): void {
    if (!this.isFreed) this.free();
  }

  /** @internal teardown, first part: the CM tells the peer */
  shutdown(): void {
    this.connection.shutdown();
  }

  /** @internal teardown, second part */
  destroy(by: string): void {
    this.destroyQueues(by);
    this.markFreed(by);
    this.events.close();
    this.init.pz.users--;
    this.ia.forget(this);
  }

  /** dat_ep_query. */
  query(): EpParameters {
    this.assertLive('ep.query');
    const { ia, state, pz, attributes, qpn } = this;
    const { recvEvd, requestEvd, connectEvd } = this.init;
    const remote = this.connection.remoteGid;
    return {
      ia,
      state,
      stateNumber: EpState[state],
      pz,
      recvEvd,
      requestEvd,
      connectEvd,
      attributes,
      localAddress: ia.address,
      remoteAddress: remote && ipFromGid(remote),
      qpn,
    };
  }

  /** dat_ep_get_status. */
  getStatus(): EpStatus {
    this.assertLive('ep.getStatus');
    return {
      state: this.state,
      recvIdle: this.queues.receives.outstanding === 0,
      requestIdle: this.queues.sends.outstanding === 0,
    };
  }

  /** Last transitions of endpoint and queue pair, and messages of the CM, for people. */
  flightRecord(): readonly string[] {
    return this.connection.flightRecord();
  }

  /**
   * Connection events, when the endpoint was made without a connect EVD. One subscriber.
   * @throws DatError DAT_INVALID_STATE when there is an EVD: use its `events$`
   */
  get connection$(): Observable<ConnectionEvent> {
    return this.events.stream<ConnectionEvent>('ep.connection$', this.init.connectEvd);
  }

  /**
   * DTO completions, when the endpoint was made without EVDs for receives and requests.
   * @throws DatError DAT_INVALID_STATE when there are EVDs: use their `events$`
   */
  get completions$(): Observable<DatEvent> {
    return this.events.stream<DatEvent>('ep.completions$', this.init.requestEvd, this.init.recvEvd);
  }

  /** The state, now and whenever it changes; completes when the endpoint is freed. */
  get state$(): Observable<EpStateName> {
    return this.events.state$;
  }

  [inspect.custom](): string {
    const { sends, receives } = this.queues;
    return (
      `Ep { id: ${this.id}, state: '${this.state}', qpn: 0x${this.qpn.toString(16)}, ` +
      `requests: ${sends.outstanding}/${sends.limit}, ` +
      `receives: ${receives.outstanding}/${receives.limit}${this.isFreed ? ', freed' : ''} }`
    );
  }

  private createQueues(): EpQueues {
    const { pz, recvEvd, requestEvd, attributes } = this.init;
    const create = (): EpQueues =>
      new EpQueues({
        ep: this,
        device: this.ia.context.device,
        owners: this.ia.owners,
        pd: pz.pd,
        recvCq: this.events.cqOf(recvEvd),
        requestCq: this.events.cqOf(requestEvd),
        attributes,
        onQueuePairEvent: (event) => this.events.onQueuePairEvent(event, this.connection),
        listener: {
          onReceived: () => this.connection.onReceived(),
          onFailed: () => this.connection.onFailed(),
          onReclaimed: () => this.connection.onReclaimed(),
        },
      });
    return spiCall({ operation: 'ia.createEndpoint', map: NO_QUEUE_PAIR }, create);
  }

  private destroyQueues(by: string): void {
    const purge = (context: number): void => this.events.purge(context);
    spiCall({ operation: by }, () => this.queues.destroy(purge));
  }

  private cmParameters(): {
    responderResources: number;
    initiatorDepth: number;
    retryCount: number;
    rnrRetryCount: number;
    minRnrTimer: number;
    accessFlags: number;
  } {
    const { maxRdmaReadIn, maxRdmaReadOut, transport } = this.attributes;
    const { retryCount, rnrRetryCount, minRnrTimer } = transport;
    return {
      responderResources: maxRdmaReadIn,
      initiatorDepth: maxRdmaReadOut,
      retryCount,
      rnrRetryCount,
      minRnrTimer,
      accessFlags: EP_ACCESS,
    };
  }

  private checkRequest(operation: string, cookie: number, flags: number, mask: number): void {
    this.assertLive(operation);
    this.checkLegal(operation, 'postRequest');
    checkCookie(operation, cookie);
    if ((flags & ~mask) === 0 && Number.isInteger(flags)) return;
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
    this.events.takeInCompletions();
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

  private checkLegal(operation: string, call: EpCall): Legality {
    const { subtype, calls } = EP_STATES[this.connection.state];
    const legality = calls[call];
    if (legality !== 'illegal') return legality;
    throw new DatError('DAT_INVALID_STATE', {
      subtype,
      operation,
      message: `endpoint ${this.id} is ${this.state}`,
      value: this.state,
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
      remote: remote && new Symbolic(`0x${remote.address.toString(16)}`),
      flags: new Symbolic(flagNames(CompletionFlags, flags)),
    });
  }
}

const READ = MemPrivileges.LOCAL_READ;
const WRITE = MemPrivileges.LOCAL_WRITE;
const NO_QUEUE_PAIR = {
  ENOMEM: ['DAT_INSUFFICIENT_RESOURCES', 'DAT_RESOURCE_TEP'],
} as const;

function remoteSegment(operation: string, remote: RemoteSegment | RemoteAddress): RemoteSegment {
  if (remote instanceof RemoteSegment) return remote;
  checkRemote(operation, 3, remote);
  return new RemoteSegment(remote);
}

function countOf(segments: unknown): number {
  return Array.isArray(segments) ? segments.length : 1;
}
