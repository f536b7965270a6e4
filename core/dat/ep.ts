/**
 * Endpoint (dat_ep): one side of a connection. Requests and receives are posted synchronously and
 * complete as events; connecting and disconnecting is asynchronous, as in DAT: calls return at once
 * and events follow on the connect EVD.
 */
import { inspect } from 'node:util';
import { spiCall } from '../errors/index.js';
import type { ConnectionEvent, DatEvent } from '../evd/index.js';
import { type CmRequest, ipFromGid, PortSpace, serviceIdOf } from '../spi/index.js';
import type { Observable } from '../stream/index.js';
import type { CloseFlag } from './constants.js';
import type { EpAttributes } from './ep-attributes.js';
import { checkConnectOptions, type ConnectOptions } from './ep-connect-options.js';
import { EpConnection } from './ep-connection.js';
import { EpEvents } from './ep-events.js';
import { isRequestGone } from './ep-outcomes.js';
import { EpPosts } from './ep-posts.js';
import { EP_ACCESS, EpQueues } from './ep-queues.js';
import { EpState, type EpStateName } from './ep-states.js';
import type { EpInit, EpParameters, EpStatus } from './ep-types.js';
import { checkOneOf } from './guards.js';
import type { Ia } from './ia.js';
import type { Pz } from './pz.js';
import type { Srq } from './srq.js';
import { Symbolic } from './trace.js';

/** Made by `ia.createEndpoint()`. */
export class Ep extends EpPosts {
  readonly handleType = 'EP';
  readonly attributes: EpAttributes;
  protected queues: EpQueues;
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
      takeInCompletions: () => this.events.takeInCompletions(),
      onTransition: (from, to) => this.events.onTransition(from, to),
      nowUs: () => ia.context.clock.now(),
    });
    init.pz.users++;
    if (init.srq !== undefined) init.srq.users++;
  }

  get state(): EpStateName {
    return this.connection.state;
  }

  /** The shared receive queue that it was made with. */
  get srq(): Srq | undefined {
    return this.init.srq;
  }

  get pz(): Pz {
    return this.init.pz;
  }

  /** Queue pair number; another one after each reset. */
  get qpn(): number {
    return this.queues.qp.qpn;
  }

  /**
   * Starts to connect (dat_ep_connect). The outcome is an event on the connect EVD: ESTABLISHED,
   * PEER_REJECTED, NON_PEER_REJECTED, UNREACHABLE, TIMED_OUT.
   * @throws DatError DAT_INVALID_STATE unless UNCONNECTED; DAT_INVALID_ADDRESS;
   * DAT_INVALID_PARAMETER
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
    this.ia.context.trace?.('ep.disconnect', {
      ep: this.id,
      flag: new Symbolic(typeof flag === 'string' ? flag : '?'),
    });
    this.assertLive('ep.disconnect');
    checkOneOf('ep.disconnect', 2, 'flag', flag, ['abrupt', 'graceful']);
    const call = flag === 'graceful' ? 'disconnectGraceful' : 'disconnectAbrupt';
    if (this.checkLegal('ep.disconnect', call) === 'no-op') return;
    this.connection.disconnect(flag === 'graceful');
  }

  /**
   * Makes a disconnected endpoint usable again (dat_ep_reset) with a fresh queue pair number;
   * posted receives are gone, and so are completions that nobody has dequeued. No-op in
   * UNCONNECTED.
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
    if (this.init.srq !== undefined) this.init.srq.users--;
    this.ia.forget(this);
  }

  /** dat_ep_query. */
  query(): EpParameters {
    this.assertLive('ep.query');
    const { ia, state, pz, attributes, qpn } = this;
    const { srq, recvEvd, requestEvd, connectEvd } = this.init;
    const remote = this.connection.remoteGid;
    return {
      ia,
      state,
      stateNumber: EpState[state],
      pz,
      srq,
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

  protected takeInCompletions(): void {
    this.events.takeInCompletions();
  }

  private createQueues(): EpQueues {
    const { pz, srq, recvEvd, requestEvd, attributes } = this.init;
    const create = (): EpQueues =>
      new EpQueues({
        ep: this,
        device: this.ia.context.device,
        owners: this.ia.owners,
        pd: pz.pd,
        recvCq: this.events.cqOf(recvEvd),
        requestCq: this.events.cqOf(requestEvd),
        attributes,
        srq,
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
}

const NO_QUEUE_PAIR = {
  ENOMEM: ['DAT_INSUFFICIENT_RESOURCES', 'DAT_RESOURCE_TEP'],
} as const;
