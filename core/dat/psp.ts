/** Public service point (dat_psp): listens on a connection qualifier. */
import { inspect } from 'node:util';
import { type ConnectionRequestEvent, DatEventNumber, type Evd } from '../evd/index.js';
import { spiCall } from '../errors/index.js';
import {
  type CmListener,
  type CmRequest,
  ipFromGid,
  PortSpace,
  serviceIdOf,
} from '../spi/index.js';
import type { Observable } from '../stream/index.js';
import { Cr } from './cr.js';
import { DatHandle } from './handle.js';
import type { Ia } from './ia.js';
import { streamOf } from './private-evd.js';

/** What `ia.createPsp` takes. */
export interface PspOptions {
  /** Connection qualifier: a port of rdma_cm's TCP port space, 1 to 65535. */
  readonly connQual: number;
  /**
   * Takes the requests; without one, they are offered as `psp.requests$`. Its qlen is the backlog.
   */
  readonly evd?: Evd;
  /** PspFlags.CONSUMER: the consumer brings the endpoint when it accepts. */
  readonly flags?: number;
}

/** Made by `ia.createPsp()`. Keeps the process alive until it is freed. */
export class Psp extends DatHandle {
  readonly handleType = 'PSP';
  /** @internal requests handed out and not answered */
  readonly unanswered = new Set<Cr>();
  private readonly listener: CmListener;
  private readonly detach: () => void;

  /** @internal */
  constructor(
    readonly ia: Ia,
    readonly connQual: number,
    readonly evd: Evd,
    private readonly isPrivate: boolean,
  ) {
    super();
    const { cm, keepAlive } = ia.context;
    const operation = 'ia.createPsp';
    this.listener = spiCall({ operation, value: connQual, hint: IN_USE_HINT }, () =>
      cm.listen({
        serviceId: serviceIdOf(PortSpace.TCP, connQual),
        backlog: evd.qlen,
        onRequest: (request) => this.onRequest(request),
      }),
    );
    this.detach = evd.attach();
    keepAlive.retain();
  }

  private onRequest(request: CmRequest): void {
    if (this.isFreed) return;
    const cr = new Cr(this.ia, this, request);
    this.unanswered.add(cr);
    const event: ConnectionRequestEvent = {
      type: 'connection-request',
      number: DatEventNumber.CONNECTION_REQUEST,
      psp: this,
      cr,
      connQual: this.connQual,
      localAddress: ipFromGid(request.localGid),
      truncated: false,
    };
    // A request that nobody will ever see must not leave the peer waiting.
    if (!this.evd.post(event)) cr.drop();
  }

  /**
   * Stops listening (dat_psp_free). Later requests are refused; those handed out stay valid.
   * @throws DatError DAT_INVALID_HANDLE when it has been freed
   */
  free(): void {
    this.assertLive('psp.free');
    this.ia.context.trace?.('psp.free', { psp: this.id });
    this.destroy('psp.free');
  }

  /** @internal teardown: also answers what nobody is going to answer */
  shutdown(by: string): void {
    for (const cr of [...this.unanswered]) cr.drop();
    this.destroy(by);
  }

  [Symbol.dispose](): void {
    if (!this.isFreed) this.free();
  }

  private destroy(by: string): void {
    this.markFreed(by);
    this.ia.forget(this);
    this.ia.context.keepAlive.release();
    this.detach();
    if (this.isPrivate) this.ia.freePrivateEvd(this.evd);
    spiCall({ operation: by }, () => this.listener.close());
  }

  /** dat_psp_query. */
  query(): { readonly ia: Ia; readonly connQual: number; readonly evd: Evd } {
    this.assertLive('psp.query');
    const { ia, connQual, evd } = this;
    return { ia, connQual, evd };
  }

  /**
   * Connection requests, when the service point was made without an EVD. One subscriber.
   * @throws DatError DAT_INVALID_STATE when there is an EVD: use its `events$`
   */
  get requests$(): Observable<ConnectionRequestEvent> {
    return streamOf<ConnectionRequestEvent>('psp.requests$', this.evd, this.isPrivate);
  }

  [inspect.custom](): string {
    return `Psp { id: ${this.id}, connQual: ${this.connQual}${this.isFreed ? ', freed' : ''} }`;
  }
}

const IN_USE_HINT = 'one service point listens on a connection qualifier at a time';
