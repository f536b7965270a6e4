/** A port of a byte-stream protocol that peers connect to, over a service point of DAT. */
import type { Cr, Psp } from 'dapl';
import { leaveUnhandled } from 'dapl/spi';
import { StreamError } from '../stream-error.js';
import type {
  ByteStreamListener,
  StreamAddress,
  StreamListenOptions,
} from '../stream-transport.js';
import type { Opening, YoungStream } from './opening.js';

/** A peer that asks for a connection, and speaks the protocol. */
export interface Caller<S extends YoungStream> {
  readonly remote: StreamAddress;
  /** @throws if there is no memory, or no endpoint; then nothing is left open */
  make(opening: Opening): S;
  /** Answers the request; if that fails, the stream reports it. */
  answer(stream: S): void;
}

/** Callbacks of a protocol for its port. */
export interface Reception<S extends YoungStream> {
  /** Undefined if the peer does not speak the protocol; the request may be rejected already. */
  meet(cr: Cr): Caller<S> | undefined;
  /** The port is closed; called once. */
  leave(): void;
}

/** Listen options, with the protocol's stream type. */
export interface ServiceOptions<S> extends Omit<StreamListenOptions, 'onStream'> {
  onStream(stream: S): void;
}

export class StreamService<S extends YoungStream> implements ByteStreamListener {
  /** Streams that are not open yet. */
  private readonly young = new Set<S>();
  private closed: Promise<void> | undefined = undefined;

  constructor(
    private readonly psp: Psp,
    readonly local: StreamAddress,
    private readonly options: ServiceOptions<S>,
    private readonly reception: Reception<S>,
  ) {
    psp.requests$.subscribe({
      next: ({ cr }) => this.onRequest(cr),
      complete: () => this.onGone(),
    });
  }

  close(): Promise<void> {
    this.closed ??= this.end();
    return this.closed;
  }

  ref(): void {
    this.psp.ref();
  }

  unref(): void {
    this.psp.unref();
  }

  private async end(): Promise<void> {
    if (!this.psp.isFreed) this.psp.free();
    for (const stream of [...this.young]) stream.giveUp();
    this.young.clear();
    this.reception.leave();
  }

  /** The service point has ended because its adapter was closed. */
  private onGone(): void {
    if (this.closed !== undefined) return;
    leaveUnhandled(this.close());
    const detail = 'its adapter has been closed';
    this.options.onError(new StreamError('ECONNABORTED', { syscall: 'accept', detail }));
  }

  private onRequest(cr: Cr): void {
    const caller = this.reception.meet(cr);
    if (caller !== undefined && this.hasRoomFor(caller.remote)) this.take(caller);
    // A request that was not answered, for any reason, still exists.
    if (!cr.isFreed) cr.reject();
  }

  private hasRoomFor(remote: StreamAddress): boolean {
    return this.young.size < this.options.backlog && this.options.admit(remote, this.local);
  }

  private take(caller: Caller<S>): void {
    let stream: S;
    const opening = {
      onOpen: (): void => {
        this.young.delete(stream);
        this.options.onStream(stream);
      },
      // The peer has left meanwhile: nothing else to do.
      onFailure: (): void => void this.young.delete(stream),
    };
    try {
      stream = caller.make(opening);
    } catch {
      // No memory, or no endpoint: keep serving others.
      return;
    }
    this.young.add(stream);
    caller.answer(stream);
  }
}
