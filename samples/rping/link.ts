/** One connection with the buffers of rping, and its steps as promises. */
import {
  type ConnectionEvent,
  type Cr,
  DatDtoStatus,
  DatEventNumber,
  type DtoCompletionEvent,
  type Ep,
  type Evd,
  type Ia,
  type Lmr,
  type LmrSegment,
  MemPrivileges,
  nameOf,
} from 'dapl';

import { type BufferPlace, MESSAGE_BYTES, readPlace, writePlace } from './protocol.js';

const CONNECT_TIMEOUT_MS = 2000;
const STEP_TIMEOUT_MS = 10_000;
/** The peer sends one message and waits for ours: two receives are never used up. */
const RECEIVES = 2;

/** There is no connection, or none any more: the last event says why. */
export class ConnectionEnded extends Error {
  constructor(
    what: string,
    readonly event: ConnectionEvent,
  ) {
    super(`${what}: ${nameOf(DatEventNumber, event.number)} ${event.reason ?? ''}`.trimEnd());
  }
}

export class Link {
  /** What a client offers for reading. */
  readonly source: Lmr;
  /** What a client offers for writing; a server's own copy. */
  readonly sink: Lmr;
  private readonly message: LmrSegment;
  private readonly receives: readonly LmrSegment[];
  private readonly connections: Evd;
  private readonly received: Evd;
  private readonly requested: Evd;
  private readonly ep: Ep;
  /** How the connection ended, once it has. */
  private lastEvent: ConnectionEvent | undefined = undefined;

  constructor(ia: Ia, sizeBytes: number) {
    const pz = ia.createPz();
    const { LOCAL_READ, LOCAL_WRITE, REMOTE_READ, REMOTE_WRITE } = MemPrivileges;
    const local = LOCAL_READ | LOCAL_WRITE;
    this.source = ia.allocate(sizeBytes, { pz, privileges: local | REMOTE_READ });
    this.sink = ia.allocate(sizeBytes, { pz, privileges: local | REMOTE_WRITE });
    const messages = ia.allocate((1 + RECEIVES) * MESSAGE_BYTES, { pz });
    const slot = (index: number): LmrSegment =>
      messages.segment(index * MESSAGE_BYTES, MESSAGE_BYTES);
    this.message = slot(0);
    this.receives = Array.from({ length: RECEIVES }, (_, index) => slot(1 + index));
    this.connections = ia.createEvd({ qlen: 8 });
    this.received = ia.createEvd({ qlen: 8 });
    this.requested = ia.createEvd({ qlen: 8 });
    this.ep = ia.createEndpoint({
      pz,
      recvEvd: this.received,
      requestEvd: this.requested,
      connectEvd: this.connections,
    });
    this.receives.forEach((segment, index) => this.ep.postRecv(segment, index));
  }

  async connect(address: string, connQual: number): Promise<void> {
    this.ep.connect({ address, connQual, timeoutMs: CONNECT_TIMEOUT_MS });
    await this.established();
  }

  async accept(request: Cr): Promise<void> {
    request.accept(this.ep);
    await this.established();
  }

  private async established(): Promise<void> {
    const event = await this.connectionEvent(2 * STEP_TIMEOUT_MS);
    if (event.number !== DatEventNumber.ESTABLISHED) throw new ConnectionEnded('connect', event);
  }

  /** The peer's next message; undefined when the connection has ended instead. */
  async receive(): Promise<BufferPlace | undefined> {
    const event = await this.completion(this.received);
    if (event.status !== DatDtoStatus.SUCCESS) {
      const ended = await this.ended(event, 'receive');
      if (ended.event.number === DatEventNumber.DISCONNECTED) return undefined;
      throw ended;
    }
    if (event.transferredLength !== MESSAGE_BYTES) {
      throw new Error(`a message of ${event.transferredLength} bytes, not ${MESSAGE_BYTES}`);
    }
    const segment = this.receives[event.cookie];
    if (segment === undefined) throw new Error(`receive ${event.cookie} was never posted`);
    const place = readPlace(segment.bytes);
    this.ep.postRecv(segment, event.cookie);
    return place;
  }

  /** As `receive`, for a side that is owed an answer. */
  async answer(): Promise<void> {
    if ((await this.receive()) === undefined && this.lastEvent !== undefined) {
      throw new ConnectionEnded('no answer', this.lastEvent);
    }
  }

  /** Tells the peer where a buffer is. */
  async offer(buffer: Lmr): Promise<void> {
    const { address, rmrContext: rkey = 0, lengthBytes } = buffer;
    writePlace(this.message.bytes, { address, rkey, lengthBytes });
    await this.send();
  }

  /** Tells the peer to go ahead: the content does not matter. */
  async goAhead(): Promise<void> {
    await this.send();
  }

  /** Reads the peer's buffer into `sink`. */
  async read(place: BufferPlace): Promise<Uint8Array> {
    const segment = this.segmentFor(place.lengthBytes);
    const remote = { address: place.address, rmrContext: place.rkey };
    this.ep.postRdmaRead(segment, 0, remote);
    await this.succeeded(await this.completion(this.requested), 'RDMA read');
    return segment.bytes;
  }

  /** Writes the first bytes of `sink` into the peer's buffer. */
  async write(place: BufferPlace, lengthBytes: number): Promise<void> {
    const remote = { address: place.address, rmrContext: place.rkey };
    this.ep.postRdmaWrite(this.segmentFor(lengthBytes), 0, remote);
    await this.succeeded(await this.completion(this.requested), 'RDMA write');
  }

  /** Ends the connection, unless the peer has; returns when it is over. */
  async disconnect(): Promise<void> {
    if (this.ep.state === 'CONNECTED') this.ep.disconnect('graceful');
    this.lastEvent ??= await this.connectionEvent(STEP_TIMEOUT_MS);
  }

  private segmentFor(lengthBytes: number): LmrSegment {
    if (lengthBytes > this.sink.lengthBytes) {
      const own = this.sink.lengthBytes;
      throw new Error(`the peer's buffer has ${lengthBytes} bytes, ours ${own}: use -S`);
    }
    return this.sink.segment(0, lengthBytes);
  }

  private async send(): Promise<void> {
    this.ep.postSend(this.message);
    await this.succeeded(await this.completion(this.requested), 'send');
  }

  private async completion(evd: Evd): Promise<DtoCompletionEvent> {
    const { event } = await evd.wait({ timeoutMs: STEP_TIMEOUT_MS });
    if (event.type !== 'dto') throw new Error(`a ${event.type} event among completions`);
    return event;
  }

  private async succeeded(completion: DtoCompletionEvent, what: string): Promise<void> {
    if (completion.status !== DatDtoStatus.SUCCESS) throw await this.ended(completion, what);
  }

  /** A request fails because the connection ends, or ends it: its last event says why. */
  private async ended(completion: DtoCompletionEvent, what: string): Promise<ConnectionEnded> {
    this.lastEvent ??= await this.connectionEvent(STEP_TIMEOUT_MS);
    return new ConnectionEnded(
      `${what} failed (${nameOf(DatDtoStatus, completion.status)})`,
      this.lastEvent,
    );
  }

  private async connectionEvent(timeoutMs: number): Promise<ConnectionEvent> {
    const { event } = await this.connections.wait({ timeoutMs });
    if (event.type === 'connection') return event;
    throw new Error(`a ${event.type} event of a connection`);
  }
}
