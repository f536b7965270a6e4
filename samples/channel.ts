/** One endpoint with event dispatchers of its own, and its steps as promises. */
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
  type Segments,
} from 'dapl';

export interface ChannelOptions {
  /** Receives that may be posted, and requests. */
  readonly receives: number;
  readonly requests: number;
  /** Segments of one receive or request. Default 1. */
  readonly segments?: number;
  /** Poll for completions; default: wait for them. */
  readonly polls?: boolean;
}

const CONNECT_TIMEOUT_MS = 20_000;
const FAREWELL_TIMEOUT_MS = 5000;
/** Connection events: established, and its end. */
const CONNECTION_EVENTS = 4;

/** There is no connection, or none any more: the last event says why. */
export class ConnectionEnded extends Error {
  constructor(
    what: string,
    readonly event: ConnectionEvent,
  ) {
    super(`${what}: ${nameOf(DatEventNumber, event.number)} ${event.reason ?? ''}`.trimEnd());
  }
}

export class Channel {
  readonly ep: Ep;
  private readonly received: Evd;
  private readonly completed: Evd;
  private readonly connections: Evd;
  private readonly polls: boolean;

  constructor(ia: Ia, pz: Pz, options: ChannelOptions) {
    const { receives, requests, segments = 1, polls = false } = options;
    const polling = polls ? 'spin' : 'event';
    this.polls = polls;
    this.received = ia.createEvd({ qlen: receives, polling });
    this.completed = ia.createEvd({ qlen: requests, polling });
    this.connections = ia.createEvd({ qlen: CONNECTION_EVENTS });
    this.ep = ia.createEndpoint({
      pz,
      recvEvd: this.received,
      requestEvd: this.completed,
      connectEvd: this.connections,
      attributes: {
        maxRecvDtos: receives,
        maxRequestDtos: requests,
        maxRecvIov: segments,
        maxRequestIov: segments,
        maxRdmaReadIov: segments,
        maxRdmaWriteIov: segments,
      },
    });
  }

  /** @returns what the peer has answered */
  async connect(
    address: string,
    connQual: number,
    privateData: Uint8Array = new Uint8Array(0),
  ): Promise<Uint8Array> {
    this.ep.connect({ address, connQual, privateData, timeoutMs: CONNECT_TIMEOUT_MS });
    return this.established(`port ${connQual} of ${address}`);
  }

  /** Post receives first: the peer may send at once. */
  async accept(request: Cr, privateData: Uint8Array = new Uint8Array(0)): Promise<void> {
    // A request that has come to a reserved service point holds its endpoint already.
    request.accept(request.ep === undefined ? this.ep : undefined, { privateData });
    await this.established('accept');
  }

  private async established(what: string): Promise<Uint8Array> {
    const event = await this.connectionEvent();
    if (event.number !== DatEventNumber.ESTABLISHED) throw new ConnectionEnded(what, event);
    return event.privateData;
  }

  /** Waits for the oldest receive. @throws Error unless it is this one, with this many bytes */
  async receive(cookie: number, lengthBytes: number, what: string): Promise<void> {
    checkThat(await this.nextReceived(what), cookie, lengthBytes, what);
  }

  /** Waits for the oldest request, as `receive`. */
  async complete(cookie: number, lengthBytes: number, what: string): Promise<void> {
    checkThat(await this.nextCompleted(what), cookie, lengthBytes, what);
  }

  /** Waits for the oldest receive, whichever it is. @throws Error when it has failed */
  nextReceived(what: string): Promise<DtoCompletionEvent> {
    return this.next(this.received, what);
  }

  nextCompleted(what: string): Promise<DtoCompletionEvent> {
    return this.next(this.completed, what);
  }

  /** Sends a message and waits until it has gone. */
  async send(message: LmrSegment, what: string): Promise<void> {
    this.ep.postSend(message);
    await this.complete(0, message.lengthBytes, what);
  }

  /**
   * Sends a message that the peer answers: the answer tells that it has come. The peer may leave
   * after that, and before it is known here that the message has gone.
   */
  post(message: LmrSegment): void {
    this.ep.postSend(message, 0, CompletionFlags.SUPPRESS);
  }

  postReceive(segments: Segments, cookie: number): void {
    this.ep.postRecv(segments, cookie);
  }

  /**
   * Ends the connection, unless the peer has; returns when it is over.
   * @param lastWords sent before. That they have come is not asked for: the peer may leave on them,
   * and the acknowledgement may get lost
   */
  async leave(lastWords?: LmrSegment): Promise<void> {
    if (this.ep.state === 'CONNECTED') {
      if (lastWords !== undefined) this.post(lastWords);
      this.ep.disconnect('graceful');
    }
    await this.connectionEvent();
  }

  /**
   * Waits until the peer ends the connection; ends it when that takes long. A program that ends it
   * at once may do so before the peer knows that its last message has come.
   */
  async ended(): Promise<void> {
    try {
      await this.connectionEvent(FAREWELL_TIMEOUT_MS);
    } catch (error) {
      if (!DatError.isDatError(error) || error.code !== 'DAT_TIMEOUT_EXPIRED') throw error;
      await this.leave();
    }
  }

  /** Gives everything back; a connection is ended without a word to us. */
  free(): void {
    this.ep.free();
    for (const evd of [this.received, this.completed, this.connections]) void evd.free();
  }

  private async next(evd: Evd, what: string): Promise<DtoCompletionEvent> {
    const event = this.polls ? await poll(evd) : (await evd.wait()).event;
    if (event.type !== 'dto') throw new Error(`${what}: a ${event.type} event among completions`);
    if (event.status === DatDtoStatus.SUCCESS) return event;
    const status = `${what} failed (${nameOf(DatDtoStatus, event.status)})`;
    throw new ConnectionEnded(status, await this.connectionEvent());
  }

  private async connectionEvent(timeoutMs = Infinity): Promise<ConnectionEvent> {
    const { event } = await this.connections.wait({ timeoutMs });
    if (event.type === 'connection') return event;
    throw new Error(`a ${event.type} event of a connection`);
  }
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

/** Looks until there is an event; other tasks of the process have their turns in between. */
async function poll(evd: Evd): Promise<DatEvent> {
  for (;;) {
    const event = evd.dequeue();
    if (event !== undefined) return event;
    await setImmediate();
  }
}
