/** What can be asked of an endpoint: parameters, status, counts, and its events as streams. */
import { inspect } from 'node:util';
import type { ConnectionEvent, DatEvent } from '../../evd/index.js';
import { ipFromGid } from '../../spi/index.js';
import type { Observable } from '../../stream/index.js';
import { EpCore } from './core.js';
import type { EpCounterValues } from './counters.js';
import { EpState, type EpStateName } from './states.js';
import type { EpParameters, EpReceives, EpStatus } from './types.js';
import { checkWatermark } from './watermarks.js';
import { checkReset } from '../common/guards.js';

export abstract class EpObserving extends EpCore {
  /**
   * Everything there is to know of the endpoint (dat_ep_query): completions that have come are
   * taken in first, so that a connection that has failed is DISCONNECTED, and BROKEN is queued.
   */
  query(): EpParameters {
    const operation = 'ep.query';
    this.core.context.trace?.(operation, { ep: this.id });
    this.assertLive(operation);
    this.takeInCompletions();
    const { ia, state, pz, attributes, qpn } = this;
    const { recvEvd, requestEvd, connectEvd, srq } = this.init;
    const { remoteGid, target } = this.connection;
    return {
      ia,
      state,
      stateNumber: EpState[state],
      pz,
      recvEvd,
      requestEvd,
      connectEvd,
      srq,
      attributes,
      localAddress: ia.address,
      remoteAddress: remoteGid && ipFromGid(remoteGid),
      remoteConnQual: target?.port,
      softWatermark: this.watermarks?.soft ?? Infinity,
      hardWatermark: this.watermarks?.hard ?? Infinity,
      qpn,
    };
  }

  /**
   * A snapshot (dat_ep_get_status): completions that have come are taken in first. A suppressed
   * request counts until a later one has completed: nothing tells of its end before.
   */
  getStatus(): EpStatus {
    const operation = 'ep.getStatus';
    this.core.context.trace?.(operation, { ep: this.id });
    this.assertLive(operation);
    this.takeInCompletions();
    return {
      state: this.state,
      recvIdle: (this.receiveBuffers ?? 0) === 0,
      requestIdle: this.requestsFree === this.attributes.maxRequestDtos,
    };
  }

  /**
   * Receive buffers that are allocated to the endpoint and not completed (dat_ep_recv_query): of
   * its own queue, those posted; of a shared queue, those that messages have taken which are still
   * coming in. A reliable connection takes them in the order of the messages, one after the other:
   * of a shared queue it holds 1 at most, and the span is their number.
   */
  recvQuery(): EpReceives {
    const operation = 'ep.recvQuery';
    this.core.context.trace?.(operation, { ep: this.id });
    this.assertLive(operation);
    this.takeInCompletions();
    const { receiveBuffers } = this;
    return { buffersAllocated: receiveBuffers, bufferSpan: receiveBuffers };
  }

  /**
   * High watermarks of the receive buffers that `recvQuery` counts (dat_ep_set_watermark). More
   * than `soft` is told once per setting: an asynchronous error that names the endpoint, with the
   * reason `AsyncErrorReason.EP.SRQ_SOFT_HIGH_WATERMARK`. More than `hard` breaks the connection.
   * What is passed already is told, or breaks, at once.
   * @param soft 0 or more; Infinity (DAT_WATERMARK_INFINITE) disarms it
   * @param hard the same
   * @throws DatError DAT_INVALID_PARAMETER
   */
  setWatermark(soft: number, hard = Infinity): void {
    const operation = 'ep.setWatermark';
    this.core.context.trace?.(operation, { ep: this.id, soft, hard });
    this.assertLive(operation);
    checkWatermark(operation, 2, 'soft', soft);
    checkWatermark(operation, 3, 'hard', hard);
    this.armWatermarks(soft, hard);
    this.takeInCompletions();
    this.watermarks?.look(this.receiveBuffers ?? 0);
  }

  /**
   * What has been posted and received (dat_ib_query_counters on an endpoint), across resets of the
   * endpoint.
   * @param options `reset`: the counters begin again at 0; what was counted is returned
   * @throws DatError DAT_INVALID_PARAMETER
   */
  counters(options: { readonly reset?: boolean } = {}): EpCounterValues {
    const operation = 'ep.counters';
    this.core.context.trace?.(operation, { ep: this.id, reset: options?.reset });
    this.assertLive(operation);
    return this.counts.read(checkReset(operation, options));
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
   * DTO completions of receives, requests or both: of what the endpoint was made without an EVD
   * for. One subscriber.
   * @throws DatError DAT_INVALID_STATE when there are EVDs for both: use their `events$`
   */
  get completions$(): Observable<DatEvent> {
    return this.events.stream<DatEvent>('ep.completions$', this.init.requestEvd, this.init.recvEvd);
  }

  /**
   * The state, now and whenever it changes; completes when the endpoint is freed. While it has a
   * subscriber, failures are looked for, whether or not anything takes the endpoint's events.
   */
  get state$(): Observable<EpStateName> {
    return this.events.statesFrom(this.state);
  }

  [inspect.custom](): string {
    const { sends, receives } = this.queues;
    return (
      `Ep { id: ${this.id}, state: '${this.knownState}', qpn: 0x${this.qpn.toString(16)}, ` +
      `requests: ${sends.outstanding}/${sends.limit}, ` +
      `receives: ${receives.outstanding}/${receives.limit}${this.isFreed ? ', freed' : ''} }`
    );
  }
}
