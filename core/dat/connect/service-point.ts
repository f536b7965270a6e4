/**
 * The base of service points: a listener of the CM, an event dispatcher for the requests, and the
 * requests that are handed out and not answered.
 */
import { hex, showAs } from '../../spi/checks/index.js';
import { changeHold, HOLD, hasRef } from '../../spi/time/hold.js';
import { type ConnectionRequestEvent, DatEventNumber, type Evd } from '../../evd/index.js';
import { DatError, type DatSubtype, spiCall } from '../../errors/index.js';
import { type CmListener, type CmRequest, ipFromGid } from '../../spi/index.js';
import type { Observable } from '../../stream/index.js';
import { Cr } from './cr.js';
import type { Ep } from '../endpoint/ep.js';
import {
  connQualOf,
  type Service,
  serviceIdFor,
  serviceText,
} from '../endpoint/connect-options.js';
import { invalid } from '../../errors/guards.js';
import {
  begin,
  type Callee,
  endedError,
  HANDLE,
  type HandleType,
  nextHandleId,
} from '../common/handle.js';
import type { AdapterState } from '../common/adapter-state.js';
import { listenersOf } from './listen.js';
import { checkPrivate, keepProcessFor, streamOf } from '../common/private-evd.js';
import { SP_TRANSITIONS, type SpStateName, type SpTrigger } from './sp-states.js';
import type { Ia } from '../ia/ia.js';

/** IBTA table 108. */
const REJECT_NO_QP = 1;
const REJECT_NO_RESOURCES = 3;
const REJECT_INVALID_SERVICE_ID = 8;

/** @internal parameters of a service point */
export interface ServicePointInit {
  readonly service: Service;
  readonly evd: Evd;
  /** The EVD is offered as `requests$`, and freed with the service point. */
  readonly isPrivate: boolean;
  /** Transport of the requests that it can accept; default `rc`. */
  readonly transport?: CmRequest['transport'];
}

/** Base of `Psp`, `Rsp` and `Csp`. Keeps the process alive until it is freed, unless `unref()`. */
export abstract class ServicePoint implements Callee {
  static {
    const kinds: Readonly<Record<string, string>> = { PSP: 'Psp', RSP: 'Rsp', CSP: 'Csp' };
    const kindOf = ({ handleType }: ServicePoint): string => kinds[handleType] ?? 'ServicePoint';
    showAs(this, kindOf, ({ id, service, state }) => ({
      id,
      ...(typeof service === 'bigint' ? { serviceId: hex(service) } : { connQual: service }),
      state,
    }));
  }

  abstract readonly handleType: 'PSP' | 'RSP' | 'CSP';
  readonly id = nextHandleId();
  consumerContext: unknown = undefined;
  /** @internal */
  readonly service: Service;
  readonly evd: Evd;
  /** @internal of the requests that it takes: the CM refuses others, a hand-off fails here */
  readonly transport: CmRequest['transport'];
  /** @internal requests handed out and not answered */
  readonly unanswered = new Set<Cr>();
  private current: SpStateName = 'LISTENING';
  /** Bits of HOLD. */
  private hold = 0;
  /** @internal */
  freedBy: string | undefined = undefined;
  private readonly listener: CmListener;
  private readonly detach: () => void;

  /** @internal */
  constructor(
    /** @internal */
    readonly core: AdapterState,
    operation: string,
    private readonly init: ServicePointInit,
  ) {
    const { cm, processHold } = core.context;
    const { service, evd, transport = 'rc' } = init;
    this.service = service;
    this.evd = evd;
    this.transport = transport;
    this.listener = spiCall({ operation, value: service, hints: inUse(service) }, () =>
      cm.listen({
        serviceId: this.serviceId,
        backlog: evd.qlen,
        transport,
        onRequest: (request) => this.onRequest(request),
      }),
    );
    this.detach = evd.feed.attach();
    this.hold = changeHold(processHold, this.hold, HOLD.ENGAGED, true);
    listenersOf(cm).set(service, this);
  }

  get [HANDLE](): HandleType {
    return this.handleType;
  }

  get isFreed(): boolean {
    return this.freedBy !== undefined;
  }

  /** A port of rdma_cm's TCP port space; 0 if it listens on a service id of no port. */
  get connQual(): number {
    return connQualOf(this.service);
  }

  /**
   * Service id that requests name (IBTA 12.7.3): that of its port, or the one given at creation.
   */
  get serviceId(): bigint {
    return serviceIdFor(this.service);
  }

  get ia(): Ia {
    return this.core.ia;
  }

  /** LISTENING; PENDING while requests that it handed out are not answered; FREE. */
  get state(): SpStateName {
    return this.current;
  }

  /**
   * Connection requests, when the service point was made without an EVD. One subscriber.
   * @throws DatError DAT_INVALID_STATE when there is an EVD: use its `events$`
   */
  get requests$(): Observable<ConnectionRequestEvent> {
    const name = `${this.handleType.toLowerCase()}.requests$`;
    return streamOf<ConnectionRequestEvent>(name, this.evd, this.init.isPrivate);
  }

  /** @internal its EVD, as `requests$` */
  privateEvd(operation: string): Evd {
    checkPrivate(operation, this.evd, this.init.isPrivate);
    return this.evd;
  }

  /** Lets listening, and a subscription to `requests$`, keep the process alive: the default. */
  ref(): this {
    return this.keepProcess(true);
  }

  /**
   * Lets the process exit while it is listening or `requests$` has a subscriber, as `unref` of
   * node:net. An EVD that was given has its own `unref`.
   */
  unref(): this {
    return this.keepProcess(false);
  }

  /** True if listening keeps the process alive. */
  hasRef(): boolean {
    return hasRef(this.hold);
  }

  /**
   * Stops listening (dat_psp_free, dat_rsp_free, dat_csp_free). Later requests are refused; those
   * handed out stay valid.
   * @throws DatError DAT_INVALID_HANDLE when it has been freed
   */
  free(): void {
    const operation = begin(this, `${this.handleType.toLowerCase()}.free`);
    this.stop('free', operation);
  }

  [Symbol.dispose](): void {
    if (!this.isFreed) this.free();
  }

  /** @internal teardown: also answers the requests that no consumer will answer */
  shutdown(by: string): void {
    for (const cr of [...this.unanswered]) cr.drop(REJECT_NO_RESOURCES);
    if (!this.isFreed) this.stop('free', by);
  }

  /** @internal handles a request from the CM */
  onRequest(request: CmRequest): void {
    if (!this.takes(request)) {
      this.refuse(request, REJECT_INVALID_SERVICE_ID);
      return;
    }
    const held = this.endpointFor(request);
    if (held === 'none left') this.refuse(request, REJECT_NO_QP);
    else this.handOut(request, held);
  }

  /**
   * @internal takes a request from another service point
   * @throws DatError when this one cannot take it: the request is unchanged then
   */
  onHandoff(operation: string, request: CmRequest): void {
    if (!this.takes(request)) {
      const expected = 'that of a service point which takes such requests';
      throw invalid(operation, 'connQual', this.service, expected);
    }
    if (this.evd.feed.isFull)
      throw this.exhausted(operation, 'DAT_RESOURCE_TEVD', 'its EVD is full');
    const held = this.endpointFor(request);
    if (held === 'none left') {
      throw this.exhausted(operation, 'DAT_RESOURCE_TEP', 'it can make no endpoint');
    }
    this.handOut(request, held);
  }

  private keepProcess(wanted: boolean): this {
    const { evd, core, init } = this;
    this.hold = changeHold(core.context.processHold, this.hold, HOLD.UNREF, !wanted);
    if (init.isPrivate) keepProcessFor(evd, wanted);
    return this;
  }

  private takes(request: CmRequest): boolean {
    const { transport } = this;
    return this.current === 'LISTENING' && request.transport === transport && this.wants(request);
  }

  private exhausted(operation: string, subtype: DatSubtype, why: string): DatError {
    const kind = this.handleType.toLowerCase();
    return new DatError('DAT_INSUFFICIENT_RESOURCES', {
      subtype,
      operation,
      message: `${kind} ${this.id} on ${serviceText(this.service)}: ${why}`,
      hint: 'the request is still there: answer it, or hand it off later',
      value: this.service,
    });
  }

  private handOut(request: CmRequest, held: Ep | undefined): void {
    const cr = new Cr(this, request, held);
    this.unanswered.add(cr);
    const event: ConnectionRequestEvent = {
      type: 'connection-request',
      number: DatEventNumber.CONNECTION_REQUEST,
      sp: this,
      cr,
      connQual: this.connQual,
      localAddress: ipFromGid(request.localGid),
      truncated: false,
    };
    // A request that the consumer will never see must not leave the peer waiting.
    if (this.evd.feed.post(event)) this.onHandedOut();
    else cr.drop(REJECT_NO_RESOURCES);
  }

  /** @internal a request has been answered, or handed to another service point */
  onAnswered(cr: Cr): void {
    this.unanswered.delete(cr);
    if (this.current === 'PENDING') this.move('answered');
    if (this.current === 'FREE') this.end();
  }

  /** @internal @throws DatError DAT_INVALID_HANDLE when it has been freed */
  assertLive(operation: string): void {
    if (this.freedBy !== undefined) throw endedError(this, this.freedBy, operation);
  }

  /** True if a request that arrived is for this service point. */
  protected wants(_request: CmRequest): boolean {
    return true;
  }

  /** The endpoint that a request holds: none, unless this kind of service point has one. */
  protected endpointFor(_request: CmRequest): Ep | undefined | 'none left' {
    return undefined;
  }

  /** Releases that endpoint when the request is not accepted. */
  releaseEndpoint(_ep: Ep, _by: string): void {
    // Only kinds that have one release it.
  }

  /** The consumer has got a request. */
  protected onHandedOut(): void {
    // Most kinds keep listening.
  }

  protected refuse(request: CmRequest, reason: number): void {
    try {
      request.reject({ reason, privateData: new Uint8Array(0) });
    } catch (error) {
      // The peer gave up first: there is nothing left to answer.
      this.core.context.logger.debug('a request is gone', { error: String(error) });
    }
  }

  /** Ends listening. */
  protected stop(trigger: SpTrigger, by: string): void {
    this.freedBy = by;
    this.move(trigger);
    const { cm, processHold } = this.core.context;
    listenersOf(cm).delete(this.service);
    this.hold = changeHold(processHold, this.hold, HOLD.ENGAGED, false);
    this.detach();
    if (trigger === 'free') this.freePrivateEvd();
    if (this.current === 'FREE') this.end();
    spiCall({ operation: by }, () => this.listener.close());
  }

  private end(): void {
    this.freePrivateEvd();
    this.core.forget(this);
  }

  /** Refuses requests that the consumer has not seen: it will never see them. */
  private freePrivateEvd(): void {
    const { evd } = this;
    if (!this.init.isPrivate || evd.isFreed) return;
    const unseen: Cr[] = [];
    for (let event = evd.dequeue(); event !== undefined; event = evd.dequeue()) {
      if (event.type === 'connection-request') unseen.push(event.cr);
    }
    this.core.freePrivateEvd(evd);
    for (const cr of unseen) cr.drop(REJECT_NO_RESOURCES);
  }

  private move(trigger: SpTrigger): void {
    const { from, to } = SP_TRANSITIONS[trigger];
    if (!from.includes(this.current)) {
      throw new DatError('DAT_INTERNAL_ERROR', {
        operation: 'service point',
        message: `trigger ${trigger} in state ${this.current}`,
      });
    }
    this.current = this.unanswered.size > 0 ? to.unanswered : to.answered;
  }
}

function inUse(service: Service): { readonly EADDRINUSE: string } {
  const what = typeof service === 'bigint' ? 'service id' : 'connection qualifier';
  return { EADDRINUSE: `take another ${what}, or free what listens on it` };
}
