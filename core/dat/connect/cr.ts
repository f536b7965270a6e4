/**
 * Connection request (dat_cr): answered once, by accept, reject or handoff. The handle is invalid
 * after that.
 */
import { showAs } from '../../spi/checks/index.js';
import { argumentSubtype } from '../../errors/call-arguments.js';
import { DatError, spiCall, toDatError } from '../../errors/index.js';
import { CmPrivateData, type CmRequest, ipFromGid } from '../../spi/index.js';
import { accept } from '../endpoint/connecting.js';
import { Ep } from '../endpoint/ep.js';
import { EP_STATES, isRequestGone, stateAdvice } from '../endpoint/states.js';
import { checkService, serviceText } from '../endpoint/connect-options.js';
import { checkOptions, checkPrivateData } from '../../errors/guards.js';
import { begin, checkHandle, Handle } from '../common/handle.js';
import type { AdapterState } from '../common/adapter-state.js';
import { listenersOf } from './listen.js';
import type { ServicePoint } from './service-point.js';
import { CR_TRANSITIONS, type CrStateName } from './sp-states.js';
import type { Ia } from '../ia/ia.js';

/** IBTA table 108: consumer reject. */
const REJECT_CONSUMER = 28;

export interface AnswerOptions {
  /**
   * At most 196 bytes with accept, 148 with reject; the peer gets that many, padded with zeros.
   */
  readonly privateData?: Uint8Array;
}

/** Result of `cr.query()` (DAT_CR_PARAM). */
export interface CrParameters {
  readonly sp: ServicePoint;
  readonly remoteAddress: string;
  /** Source port in rdma_cm's header; 0 if the request has none. */
  readonly remotePort: number;
  readonly localAddress: string;
  /** 0 for a service id of no port. */
  readonly connQual: number;
  readonly serviceId: bigint;
  /** As `cr.privateData`. */
  readonly privateData: Uint8Array;
  /** The endpoint that the request holds, if it holds one. */
  readonly localEp: Ep | undefined;
}

/** Delivered by a connection request event. */
export class Cr extends Handle {
  static {
    showAs(this, 'Cr', ({ id, remoteAddress, state }) => ({ id, remoteAddress, state }));
  }

  readonly handleType = 'CR';
  private current: CrStateName = 'PENDING';

  /** @internal */
  constructor(
    /** The service point that the request came to. */
    readonly sp: ServicePoint,
    private readonly request: CmRequest,
    /**
     * The endpoint that the request holds: that of a reserved service point, or one that was made
     * for it (PspFlags.PROVIDER).
     */
    readonly ep: Ep | undefined,
  ) {
    super();
    this.core.counts.count('cr');
  }

  get ia(): Ia {
    return this.sp.ia;
  }

  /** @internal */
  get core(): AdapterState {
    return this.sp.core;
  }

  /** The request's state: pending, or its outcome. */
  get state(): CrStateName {
    return this.current;
  }

  /**
   * Private data of the peer. REQ of InfiniBand and RoCE does not carry its length: it is padded
   * with zeros, to 56 bytes, or to 92 on a service id of no port. iWARP devices report the length.
   */
  get privateData(): Uint8Array {
    return this.request.privateData;
  }

  get remoteAddress(): string {
    return ipFromGid(this.request.remoteGid);
  }

  /** The object to accept it with: an endpoint (`rc`), or an XRC domain (`domain.accept`). */
  get transport(): 'rc' | 'xrc' {
    return this.request.transport;
  }

  /** dat_cr_query. */
  query(): CrParameters {
    this.assertLive('cr.query');
    const { sp, request, remoteAddress, privateData, ep: localEp } = this;
    return {
      sp,
      remoteAddress,
      remotePort: request.remotePort,
      localAddress: ipFromGid(request.localGid),
      connQual: sp.connQual,
      serviceId: sp.serviceId,
      privateData,
      localEp,
    };
  }

  /**
   * Accepts (dat_cr_accept). ESTABLISHED follows on the endpoint's connect EVD, or
   * ACCEPT_COMPLETION_ERROR. Post receives first: the endpoint is ready to receive when this
   * returns.
   * @param ep an unconnected one; undefined if and only if the request holds one (`cr.ep`)
   * @throws DatError DAT_INVALID_STATE unless the endpoint is UNCONNECTED; DAT_INVALID_HANDLE (also
   * both endpoints, or neither); DAT_INVALID_PARAMETER
   */
  accept(ep?: Ep, options: AnswerOptions = {}): void {
    const operation = begin(this, 'cr.accept', { ep: ep ?? this.ep });
    const endpoint = this.endpointOf(operation, ep);
    checkOptions(operation, options, ['privateData']);
    const privateData = checkPrivateData(operation, options.privateData, CmPrivateData.REP);
    spiCall({ operation }, () => accept(endpoint.record, this.request, privateData));
    this.core.counts.count('crAccepted');
    this.retire(operation, 'accept');
  }

  /**
   * Rejects (dat_cr_reject): the peer sees PEER_REJECTED with the private data. The endpoint that
   * the request holds is UNCONNECTED again, or freed if it was made for the request.
   * @throws DatError DAT_INVALID_HANDLE, DAT_INVALID_PARAMETER
   */
  reject(options: AnswerOptions = {}): void {
    const operation = begin(this, 'cr.reject');
    checkOptions(operation, options, ['privateData']);
    const privateData = checkPrivateData(operation, options.privateData, CmPrivateData.REJ);
    this.answerReject(operation, REJECT_CONSUMER, privateData);
  }

  /**
   * Hands the request to the listener on another connection qualifier of the device
   * (dat_cr_handoff), which gets it as if it had arrived there. The endpoint that the request holds
   * is released as by `reject`; the peer notices nothing.
   * @param connQual a port; as a bigint, a service id
   * @throws DatError DAT_INVALID_PARAMETER when nothing listens there, or not for such a request;
   * DAT_INSUFFICIENT_RESOURCES when it has no room for it (DAT_RESOURCE_TEVD) or can make no
   * endpoint (DAT_RESOURCE_TEP): the request is as it was then; DAT_INVALID_HANDLE
   */
  handoff(connQual: number | bigint): void {
    const operation = begin(this, 'cr.handoff', { connQual });
    const service = checkService(
      operation,
      typeof connQual === 'bigint' ? { serviceId: connQual } : { connQual },
    );
    const target = listenersOf(this.core.context.cm).get(service);
    if (target === undefined) {
      throw new DatError('DAT_INVALID_PARAMETER', {
        subtype: argumentSubtype(operation, 'connQual'),
        operation,
        message: `nothing listens on ${serviceText(service)} of this device`,
        hint: 'listen there first: ia.createPsp()',
        value: service,
      });
    }
    target.onHandoff(operation, this.request);
    this.retire(operation, 'handoff');
  }

  /** @internal accepts without an endpoint; if `accept` throws, the request is unchanged */
  answer<T>(operation: string, accept: (request: CmRequest) => T): T {
    this.assertLive(operation);
    const answered = spiCall({ operation }, () => accept(this.request));
    this.retire(operation, 'accept');
    return answered;
  }

  /** @internal there was no room for the request, or nothing that could answer it */
  drop(reason: number): void {
    this.answerReject(this.sp.handleType.toLowerCase(), reason, new Uint8Array(0));
  }

  /** The endpoint that accepts: the request's own, or the one given. */
  private endpointOf(operation: string, given: Ep | undefined): Ep {
    if (this.ep !== undefined) {
      if (given === undefined || given === this.ep) return this.ep;
      throw new DatError('DAT_INVALID_HANDLE', {
        subtype: 'DAT_INVALID_HANDLE_EP',
        operation,
        message: `the request holds endpoint ${this.ep.id}; another cannot accept it`,
        hint: 'cr.accept(undefined, options)',
        value: given,
      });
    }
    if (this.transport === 'xrc') {
      throw new DatError('DAT_INVALID_PARAMETER', {
        subtype: argumentSubtype(operation, 'cr'),
        operation,
        message: `connection request ${this.id} is of an XRC initiator`,
        hint: 'accept it with an XRC domain',
        value: this,
      });
    }
    checkHandle(operation, Ep, 'EP', given, this.core);
    const { id, state } = given;
    if (state === 'UNCONNECTED') return given;
    throw new DatError('DAT_INVALID_STATE', {
      subtype: EP_STATES[state].subtype,
      operation,
      message: `endpoint ${id} is ${state}; only an unconnected one can accept`,
      value: state,
      hint: stateAdvice(state, 'accept'),
    });
  }

  private answerReject(operation: string, reason: number, privateData: Uint8Array): void {
    this.core.counts.count('crRejected');
    this.retire(operation, 'reject');
    try {
      this.request.reject({ reason, privateData });
    } catch (error) {
      // The peer gave up first: there is nothing left to answer.
      if (!isRequestGone(error)) throw toDatError(error, { operation });
    }
  }

  private retire(operation: string, by: keyof typeof CR_TRANSITIONS): void {
    const { to, endpoint } = CR_TRANSITIONS[by];
    this.current = to;
    this.markFreed(operation);
    if (endpoint === 'returns' && this.ep !== undefined) {
      this.sp.releaseEndpoint(this.ep, operation);
    }
    this.sp.onAnswered(this);
  }
}
