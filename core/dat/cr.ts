/**
 * Connection request (dat_cr): answered once, by accept or reject; the handle dies with the answer.
 */
import { inspect } from 'node:util';
import { DatError, spiCall, toDatError } from '../errors/index.js';
import { CmPrivateData, type CmRequest, ipFromGid } from '../spi/index.js';
import { Ep } from './ep.js';
import { isRequestGone } from './ep-outcomes.js';
import { EP_STATES } from './ep-states.js';
import { checkOptions, checkPrivateData } from './guards.js';
import { checkHandle, DatHandle } from './handle.js';
import type { Ia } from './ia.js';
import type { Psp } from './psp.js';

/** IBTA table 108: consumer reject, and no resources. */
const REJECT_CONSUMER = 28;
const REJECT_NO_RESOURCES = 3;

export interface AnswerOptions {
  /** At most 196 bytes with accept, 148 with reject. */
  readonly privateData?: Uint8Array;
}

/** What `cr.query()` tells. */
export interface CrParameters {
  readonly psp: Psp;
  readonly remoteAddress: string;
  /** Source port in rdma_cm's header; 0 if the request has none. */
  readonly remotePort: number;
  readonly localAddress: string;
  readonly privateData: Uint8Array;
}

/** Comes with a connection request event. */
export class Cr extends DatHandle {
  readonly handleType = 'CR';

  /** @internal */
  constructor(
    readonly ia: Ia,
    readonly psp: Psp,
    private readonly request: CmRequest,
  ) {
    super();
  }

  /** What the peer sent along; rdma_cm pads it with zeros to 56 bytes. */
  get privateData(): Uint8Array {
    return this.request.privateData;
  }

  get remoteAddress(): string {
    return ipFromGid(this.request.remoteGid);
  }

  /** What it is to be accepted with: an endpoint (`rc`), or an XRC domain (`domain.accept`). */
  get transport(): 'rc' | 'xrc' {
    return this.request.transport;
  }

  /** dat_cr_query. */
  query(): CrParameters {
    this.assertLive('cr.query');
    return {
      psp: this.psp,
      remoteAddress: this.remoteAddress,
      remotePort: this.request.remotePort,
      localAddress: ipFromGid(this.request.localGid),
      privateData: this.privateData,
    };
  }

  /**
   * Accepts with an unconnected endpoint (dat_cr_accept). ESTABLISHED follows on its connect EVD,
   * or ACCEPT_COMPLETION_ERROR. Post receives first: the endpoint is ready to receive when this
   * returns.
   * @throws DatError DAT_INVALID_STATE unless the endpoint is UNCONNECTED; DAT_INVALID_HANDLE;
   * DAT_INVALID_PARAMETER
   */
  accept(ep: Ep, options: AnswerOptions = {}): void {
    const operation = 'cr.accept';
    this.ia.context.trace?.(operation, { cr: this.id, ep });
    this.assertLive(operation);
    checkHandle(operation, Ep, 'EP', ep, this.ia);
    checkOptions(operation, 3, options, ['privateData']);
    const privateData = checkPrivateData(operation, 3, options.privateData, CmPrivateData.REP);
    const { subtype, calls } = EP_STATES[ep.state];
    if (calls.accept === 'illegal') {
      throw new DatError('DAT_INVALID_STATE', {
        subtype,
        operation,
        message: `endpoint ${ep.id} is ${ep.state}; only an unconnected one can accept`,
        value: ep.state,
      });
    }
    spiCall({ operation }, () => ep.accept(this.request, privateData));
    this.retire(operation);
  }

  /**
   * Rejects (dat_cr_reject): the peer sees PEER_REJECTED with the private data.
   * @throws DatError DAT_INVALID_HANDLE, DAT_INVALID_PARAMETER
   */
  reject(options: AnswerOptions = {}): void {
    const operation = 'cr.reject';
    this.ia.context.trace?.(operation, { cr: this.id });
    this.assertLive(operation);
    checkOptions(operation, 2, options, ['privateData']);
    const privateData = checkPrivateData(operation, 2, options.privateData, CmPrivateData.REJ);
    this.answerReject(operation, REJECT_CONSUMER, privateData);
  }

  /** @internal accepts by other means than an endpoint; what `accept` throws leaves it as it was */
  answer<T>(operation: string, accept: (request: CmRequest) => T): T {
    this.assertLive(operation);
    const answered = spiCall({ operation }, () => accept(this.request));
    this.retire(operation);
    return answered;
  }

  /** @internal there was no room for the request */
  drop(): void {
    this.answerReject('psp', REJECT_NO_RESOURCES, new Uint8Array(0));
  }

  private answerReject(operation: string, reason: number, privateData: Uint8Array): void {
    this.retire(operation);
    try {
      this.request.reject({ reason, privateData });
    } catch (error) {
      // The peer gave up first: there is nobody left to tell.
      if (!isRequestGone(error)) throw toDatError(error, { operation });
    }
  }

  private retire(operation: string): void {
    this.markFreed(operation);
    this.psp.unanswered.delete(this);
  }

  [inspect.custom](): string {
    const answered = this.isFreed ? ', answered' : '';
    return `Cr { id: ${this.id}, remoteAddress: '${this.remoteAddress}'${answered} }`;
  }
}
