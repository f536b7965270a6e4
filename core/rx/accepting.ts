/** Accepts the connections of a service point, as a stream of endpoints. */
import { firstValueFrom, isObservable, Observable } from 'rxjs';
import type { Cr } from '../dat/connect/cr.js';
import { Psp } from '../dat/connect/psp.js';
import { Rsp } from '../dat/connect/rsp.js';
import { ServicePoint } from '../dat/connect/service-point.js';
import { PspFlags } from '../dat/common/constants.js';
import type { EndpointOptions } from '../dat/endpoint/endpoint-maker.js';
import type { Ep } from '../dat/endpoint/ep.js';
import { checkFields, checkParameter, checkPrivateData } from '../errors/guards.js';
import { ANYTHING, FUNCTION, integer, kindOf, OBJECT, optional } from '../spi/checks/index.js';
import { CmPrivateData } from '../spi/index.js';
import { apart } from './run-outside-upcall.js';
import { connected } from './connected.js';
import { upcalls } from './upcalls.js';

/** How requests are accepted. */
export interface AcceptingOptions {
  /**
   * Options of the endpoint for each request; required unless the requests come with one
   * (PspFlags.PROVIDER, a reserved service point).
   */
  readonly endpoint?: EndpointOptions;
  /**
   * Called for a request before it is accepted, to prepare its endpoint: subscribe to
   * `receives(ep)` here, or post receives. It may answer the request itself: `cr.reject()`,
   * `cr.handoff()`, `cr.accept()`. If it throws, the request is rejected.
   */
  readonly prepare?: (ep: Ep, cr: Cr) => void;
  /** Private data of each acceptance: at most 196 bytes. */
  readonly privateData?: Uint8Array;
  /** Handshakes at a time, 1 to 65536; default 16. Other requests wait in the dispatcher. */
  readonly limit?: number;
  /** true: no request is taken until it emits false; they wait in the dispatcher. See `upcalls`. */
  readonly paused$?: Observable<boolean>;
  /**
   * Called for each request that has not become a connection: with the error of making the
   * endpoint, of `prepare` or of accepting, or the reason why the handshake failed. Without it,
   * errors of our own side go to `ia.async$`, and a peer that leaves is not reported.
   */
  readonly failed?: (error: unknown, cr: Cr) => void;
}

const OPTIONS = {
  endpoint: optional(OBJECT),
  prepare: optional(FUNCTION),
  /** Checked for its length, too. */
  privateData: ANYTHING,
  limit: optional(integer(1, 65536)),
  paused$: optional(kindOf<Observable<boolean>>('an Observable', isObservable)),
  failed: optional(FUNCTION),
};

/**
 * Accepts the requests of a service point, and emits each endpoint when it is CONNECTED. A cold
 * Observable with one subscriber. The endpoints are the subscriber's; one whose handshake fails, or
 * ends after the subscriber has left, is freed. Requests that have not been taken wait in the
 * dispatcher, whose `qlen` is the backlog; those of XRC initiators are rejected: take
 * `psp.requests$` for them. Leaving does not end the service point: that is `psp.free()`, with
 * which the stream completes when the pending handshakes have ended. Errors as `upcalls`.
 * @param psp made without an EVD
 * @throws DatError DAT_INVALID_PARAMETER; DAT_INVALID_STATE when the requests go to an EVD of yours
 */
export function accepting(psp: ServicePoint, options: AcceptingOptions = {}): Observable<Ep> {
  const operation = 'accepting';
  checkParameter(operation, 'psp', psp, psp instanceof ServicePoint, 'a ServicePoint');
  checkFields(operation, options, OPTIONS);
  const { endpoint, privateData, limit, paused$ } = options;
  checkPrivateData(operation, privateData, CmPrivateData.REP);
  const isNeeded = endpoint === undefined && !bringsEndpoints(psp);
  checkParameter(operation, 'endpoint', endpoint, !isNeeded, 'what endpoints are made with');
  const evd = psp.privateEvd(operation);
  const how = {
    policy: 'MANY' as const,
    ...(limit !== undefined && { limit }),
    ...(paused$ !== undefined && { paused$ }),
  };
  return new Observable<Ep>((subscriber) => {
    const handshakes = upcalls(evd, how, async (event) => {
      if (event.type !== 'connection-request') return;
      const ep = await accept(psp, event.cr, options);
      if (ep === undefined) return;
      await apart(() => {
        if (subscriber.closed) discard(psp, event.cr, ep);
        else subscriber.next(ep);
      });
    });
    return handshakes.subscribe({
      error: (error: unknown) => subscriber.error(error),
      complete: () => subscriber.complete(),
    });
  });
}

function bringsEndpoints(psp: ServicePoint): boolean {
  if (psp instanceof Rsp) return true;
  return psp instanceof Psp && psp.query().flags === PspFlags.PROVIDER;
}

/** Accepts a request. Undefined if it has not become a connection. */
async function accept(
  psp: ServicePoint,
  cr: Cr,
  options: AcceptingOptions,
): Promise<Ep | undefined> {
  const { failed } = options;
  let ep: Ep | undefined;
  try {
    ep = begin(psp, cr, options);
  } catch (error) {
    if (cr.state === 'PENDING') cr.reject();
    if (failed === undefined) throw error;
    failed(error, cr);
  }
  if (ep === undefined) return undefined;
  try {
    return await firstValueFrom(connected(ep));
  } catch (error) {
    discard(psp, cr, ep);
    failed?.(error, cr);
    return undefined;
  }
}

/** Undefined if `prepare` has answered the request other than by accepting it. */
function begin(psp: ServicePoint, cr: Cr, options: AcceptingOptions): Ep | undefined {
  const { endpoint, prepare, privateData } = options;
  if (cr.transport === 'xrc') {
    cr.reject();
    return undefined;
  }
  const ep = cr.ep ?? psp.ia.createEndpoint(endpoint!);
  try {
    prepare?.(ep, cr);
    if (cr.state !== 'PENDING') {
      if (cr.state === 'ACCEPTED') return ep;
      discard(psp, cr, ep);
      return undefined;
    }
    cr.accept(ep, privateData === undefined ? {} : { privateData });
    return ep;
  } catch (error) {
    if (cr.ep === undefined) discard(psp, cr, ep);
    throw error;
  }
}

/** Frees the endpoint, unless a reserved service point lent it: then its owner already has it. */
function discard(psp: ServicePoint, cr: Cr, ep: Ep): void {
  const isReserved = cr.ep !== undefined && psp instanceof Rsp;
  if (!isReserved && !ep.isFreed) ep.free();
}
