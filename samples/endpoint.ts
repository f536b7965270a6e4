/**
 * An endpoint in uDAPL style: one event dispatcher for each kind of event, waited on or polled; the
 * next event must be the expected one.
 */
import { setImmediate } from 'node:timers/promises';

import {
  CompletionFlags,
  type ConnectionEvent,
  type Cr,
  DatDtoStatus,
  DatError,
  type DatEvent,
  DatEventNumber,
  type DtoCompletionEvent,
  type Ep,
  type Evd,
  type Ia,
  type LmrSegment,
  nameOf,
  type Pz,
} from 'dapl';
import { leaveUnhandled } from 'dapl/spi';

export interface EndpointOptions {
  /** Number of receives that may be posted, and of requests. */
  readonly receives: number;
  readonly requests: number;
  /** Segments of one receive or request. Default 1. */
  readonly segments?: number;
  /** True to poll for completions; default: wait for them. */
  readonly polls?: boolean;
}

export interface Endpoint {
  readonly ep: Ep;
  readonly recvEvd: Evd;
  readonly requestEvd: Evd;
  readonly connectEvd: Evd;
  readonly polls: boolean;
}

const CONNECT_TIMEOUT_MS = 20_000;
const FAREWELL_TIMEOUT_MS = 5000;
/** Events of a connection: established, and the end. */
const CONNECTION_EVENTS = 4;

/** The connection was not established, or has ended: the last event says why. */
export class ConnectionEnded extends Error {
  constructor(
    what: string,
    readonly event: ConnectionEvent,
  ) {
    super(`${what}: ${nameOf(DatEventNumber, event.number)} ${event.reason ?? ''}`.trimEnd());
  }
}

export function createEndpoint(ia: Ia, pz: Pz, options: EndpointOptions): Endpoint {
  const { receives, requests, segments = 1, polls = false } = options;
  const polling = polls ? 'spin' : 'event';
  const recvEvd = ia.createEvd({ qlen: receives, polling });
  const requestEvd = ia.createEvd({ qlen: requests, polling });
  const connectEvd = ia.createEvd({ qlen: CONNECTION_EVENTS });
  const attributes = {
    maxRecvDtos: receives,
    maxRequestDtos: requests,
    maxRecvIov: segments,
    maxRequestIov: segments,
    maxRdmaReadIov: segments,
    maxRdmaWriteIov: segments,
  };
  const ep = ia.createEndpoint({ pz, recvEvd, requestEvd, connectEvd, attributes });
  return { ep, recvEvd, requestEvd, connectEvd, polls };
}

/** Connects. @returns the peer's private data */
export function connect(
  endpoint: Endpoint,
  address: string,
  connQual: number,
  privateData: Uint8Array = new Uint8Array(0),
): Promise<Uint8Array> {
  endpoint.ep.connect({ address, connQual, privateData, timeoutMs: CONNECT_TIMEOUT_MS });
  return established(endpoint, `port ${connQual} of ${address}`);
}

/** Accepts a connection. Post receives first: the peer may send immediately. */
export async function accept(
  endpoint: Endpoint,
  request: Cr,
  privateData: Uint8Array = new Uint8Array(0),
): Promise<void> {
  // A request at a reserved service point already has its endpoint.
  request.accept(request.ep === undefined ? endpoint.ep : undefined, { privateData });
  await established(endpoint, 'accept');
}

async function established(endpoint: Endpoint, what: string): Promise<Uint8Array> {
  const event = await connectionEvent(endpoint);
  if (event.number !== DatEventNumber.ESTABLISHED) throw new ConnectionEnded(what, event);
  return event.privateData;
}

/** Waits for the oldest receive. @throws Error unless it is this one, with this many bytes */
export async function received(
  endpoint: Endpoint,
  cookie: number,
  lengthBytes: number,
  what: string,
): Promise<void> {
  checkThat(await nextReceived(endpoint, what), cookie, lengthBytes, what);
}

/** Waits for the oldest request, like `received`. */
export async function completed(
  endpoint: Endpoint,
  cookie: number,
  lengthBytes: number,
  what: string,
): Promise<void> {
  checkThat(await next(endpoint, endpoint.requestEvd, what), cookie, lengthBytes, what);
}

/** Waits for the oldest receive, whichever it is. @throws Error if it failed */
export function nextReceived(endpoint: Endpoint, what: string): Promise<DtoCompletionEvent> {
  return next(endpoint, endpoint.recvEvd, what);
}

/**
 * Sends a message that the peer answers; the answer shows that it arrived. The peer may disconnect
 * after that, even before the completion of this message is known here.
 */
export function tell({ ep }: Endpoint, message: LmrSegment): void {
  ep.postSend(message, 0, CompletionFlags.SUPPRESS);
}

/**
 * Disconnects, unless the peer has; resolves when the connection has ended.
 * @param lastWords sent before. Its arrival is not checked: the peer may disconnect when it has
 * arrived, and the acknowledgement may get lost
 */
export async function leave(endpoint: Endpoint, lastWords?: LmrSegment): Promise<void> {
  const { ep } = endpoint;
  if (ep.state === 'CONNECTED') {
    if (lastWords !== undefined) tell(endpoint, lastWords);
    ep.disconnect('graceful');
  }
  await connectionEvent(endpoint);
}

/**
 * Waits until the peer disconnects; disconnects if that takes long. A program that disconnects at
 * once may do so before the peer knows that its last message has arrived.
 */
export async function ended(endpoint: Endpoint): Promise<void> {
  try {
    await connectionEvent(endpoint, FAREWELL_TIMEOUT_MS);
  } catch (error) {
    if (!DatError.isDatError(error) || error.code !== 'DAT_TIMEOUT_EXPIRED') throw error;
    await leave(endpoint);
  }
}

/** Frees all objects; an open connection is aborted. */
export function free({ ep, recvEvd, requestEvd, connectEvd }: Endpoint): void {
  // If the adapter is closed, they are freed already.
  if (!ep.isFreed) ep.free();
  for (const evd of [recvEvd, requestEvd, connectEvd]) {
    if (!evd.isFreed) leaveUnhandled(evd.free());
  }
}

async function next(endpoint: Endpoint, evd: Evd, what: string): Promise<DtoCompletionEvent> {
  const event = endpoint.polls ? await poll(evd) : (await evd.wait()).event;
  if (event.type !== 'dto') throw new Error(`${what}: a ${event.type} event among completions`);
  if (event.status === DatDtoStatus.SUCCESS) return event;
  const status = `${what} failed (${nameOf(DatDtoStatus, event.status)})`;
  throw new ConnectionEnded(status, await connectionEvent(endpoint));
}

async function connectionEvent(
  { connectEvd }: Endpoint,
  timeoutMs = Infinity,
): Promise<ConnectionEvent> {
  const { event } = await connectEvd.wait({ timeoutMs });
  if (event.type === 'connection') return event;
  throw new Error(`a ${event.type} event of a connection`);
}

function checkThat(
  { cookie, transferredLength }: DtoCompletionEvent,
  expectedCookie: number,
  lengthBytes: number,
  what: string,
): void {
  if (cookie !== expectedCookie) throw new Error(`${what}: completion of ${cookie} instead`);
  if (transferredLength === lengthBytes) return;
  throw new Error(`${what}: ${transferredLength} bytes, not ${lengthBytes}`);
}

/** Polls until there is an event; other tasks of the process run in between. */
async function poll(evd: Evd): Promise<DatEvent> {
  for (;;) {
    const event = evd.dequeue();
    if (event !== undefined) return event;
    await setImmediate();
  }
}
