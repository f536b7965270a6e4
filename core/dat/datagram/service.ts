/** A datagram service: answers peers with the endpoint's queue pair and Q_Key (SIDR). */
import { spiCall } from '../../errors/index.js';
import {
  type CmListener,
  CmPrivateData,
  type CmResolveRequest,
  ipFromGid,
  PortSpace,
  serviceIdOf,
} from '../../spi/index.js';
import { checkFields, checkPrivateData } from '../../errors/guards.js';
import { FUNCTION, integer, optional, showAs } from '../../spi/checks/index.js';
import { changeHold, HOLD, hasRef } from '../../spi/time/hold.js';
import { CONN_QUAL } from '../endpoint/connect-options.js';
import type { UdEp } from './endpoint.js';
import { nextHandleId } from '../common/handle.js';
import { notSupported } from '../common/unsupported.js';
import { NO_SIDR } from './resolve.js';

/** The requesting peer. */
export interface ServiceRequest {
  readonly address: string;
  /** Source port in rdma_cm's header; 0 if the request has none. */
  readonly port: number;
  readonly localAddress: string;
  /** 180 bytes: the peer's private data, padded with zeros. */
  readonly privateData: Uint8Array;
}

/** The answer to a request. */
export interface ServiceAnswer {
  /** False refuses: the peer sees SIDR status 2. Default true. */
  readonly accept?: boolean;
  /** At most 136 bytes. */
  readonly privateData?: Uint8Array;
}

/** Options of `ep.serve`. */
export interface ServeOptions {
  /** Connection qualifier: a port of rdma_cm's UDP port space, 1 to 65535. */
  readonly connQual: number;
  /**
   * Decides on each request, synchronously; default accepts all. A repeated request gets the same
   * answer without asking again. If it throws, the request is refused and the error is logged.
   */
  readonly answer?: (request: ServiceRequest) => ServiceAnswer | undefined;
  /** Requests that may wait for their answer; 1 to 2^20, default 128. */
  readonly backlog?: number;
}

const OPERATION = 'ep.serve';
const NONE = new Uint8Array(0);
const REJECTED_BY_PROVIDER = 2;
const SERVE_OPTIONS = {
  connQual: CONN_QUAL,
  answer: optional(FUNCTION),
  backlog: optional(integer(1, 2 ** 20)),
};

/** Made by `ep.serve()`. Keeps the process alive until it is freed, unless `unref()`. */
export class UdService {
  static {
    showAs(this, 'UdService', ({ id, connQual, ended: freed }) => ({ id, connQual, freed }));
  }

  readonly id = nextHandleId();
  readonly connQual: number;
  private readonly listener: CmListener;
  private ended = false;
  /** Bits of HOLD. */
  private hold = 0;

  /**
   * @internal
   * @throws DatError
   */
  constructor(
    private readonly ep: UdEp,
    private readonly options: ServeOptions,
    private readonly onFreed: (service: UdService) => void,
  ) {
    checkFields(OPERATION, options, SERVE_OPTIONS);
    const { connQual, backlog = 128 } = options;
    this.connQual = connQual;
    const { cm } = ep.core.context;
    if (cm.resolve === undefined) throw notSupported(OPERATION, NO_SIDR);
    const serviceId = serviceIdOf(PortSpace.UDP, connQual);
    const onResolve = (request: CmResolveRequest): void => this.onResolve(request);
    this.listener = spiCall({ operation: OPERATION, value: connQual, hints: IN_USE }, () =>
      cm.listen({ serviceId, backlog, onResolve }),
    );
    this.change(HOLD.ENGAGED, true);
  }

  get isFreed(): boolean {
    return this.ended;
  }

  /** Lets serving keep the process alive: the default. @returns itself */
  ref(): this {
    return this.change(HOLD.UNREF, false);
  }

  /** Lets the process exit while serving, as `unref` of node:net. */
  unref(): this {
    return this.change(HOLD.UNREF, true);
  }

  /** True if serving keeps the process alive. */
  hasRef(): boolean {
    return hasRef(this.hold);
  }

  /**
   * Stops serving: later requests are refused; handles that peers have stay valid. Again: no-op.
   */
  free(): void {
    if (this.ended) return;
    this.ended = true;
    this.ep.core.context.trace?.('service.free', { service: this.id });
    this.listener.close();
    this.change(HOLD.ENGAGED, false);
    this.onFreed(this);
  }

  [Symbol.dispose](): void {
    this.free();
  }

  private change(bit: number, on: boolean): this {
    this.hold = changeHold(this.ep.core.context.processHold, this.hold, bit, on);
    return this;
  }

  private onResolve(request: CmResolveRequest): void {
    const { accept, privateData } = this.ended ? REFUSAL : this.answerTo(request);
    if (accept) request.accept({ qpn: this.ep.qpn, qkey: this.ep.attributes.qkey, privateData });
    else request.reject({ status: REJECTED_BY_PROVIDER, privateData });
  }

  private answerTo(request: CmResolveRequest): { accept: boolean; privateData: Uint8Array } {
    const { privateData, remotePort: port } = request;
    const address = ipFromGid(request.remoteGid);
    const localAddress = ipFromGid(request.localGid);
    try {
      const answer = this.options.answer?.({ address, port, localAddress, privateData }) ?? {};
      const { accept = true, privateData: data = NONE } = answer;
      checkPrivateData(OPERATION, data, CmPrivateData.SIDR_REP);
      return { accept, privateData: data };
    } catch (error) {
      const { logger } = this.ep.core.context;
      logger.error(`datagram service ${this.connQual}: its answer threw`, { error: String(error) });
      return REFUSAL;
    }
  }
}

const REFUSAL = { accept: false, privateData: NONE } as const;
const IN_USE = { EADDRINUSE: 'take another connection qualifier, or free what serves it' };
