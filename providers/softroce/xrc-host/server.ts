/** The host's end of its openers' connections. */
import { SpiError } from '../../../core/spi/index.js';
import type { UnixListener, UnixSocket } from '../../host/index.js';
import { HostDomain, type HostObjects, type Opener } from './host-domain.js';
import { type Answer, decode, encode, type Note } from './messages.js';

/** While an opener's queue is full. */
const RETRY_MS = 5;
/** For an opener that is stopped; one that asks on without reading is ended. */
const MOST_WAITING = 4096;
/** A connection is accepted before it has said `open`; what connects opens at once. */
const OPEN_MS = 10_000;
/** Number of an opener's `open`. */
const FIRST_REQUEST = 1;

export interface ServerInit {
  readonly listener: UnixListener;
  readonly closeDescriptor: (descriptor: number) => void;
  /** The last opener has gone. Once. */
  readonly onEmpty: () => void;
}

export class Server {
  private readonly callers = new Set<Caller>();
  private domain: HostDomain | undefined;
  private ended = false;

  constructor(private readonly init: ServerInit) {
    setTimeout(() => this.endIfEmpty(), OPEN_MS).unref();
  }

  /** The device is there. */
  serve(objects: HostObjects): void {
    this.domain = new HostDomain(objects);
    this.init.listener.watch(() => this.accept(this.domain!));
    this.accept(this.domain);
  }

  /** Refuses waiting openers with the reason: there is no device. */
  refuse({ code, message }: SpiError): void {
    const answer = encode({ answer: FIRST_REQUEST, code, message });
    for (let socket = this.next(); socket !== undefined; socket = this.next()) {
      try {
        socket.send(answer, []);
      } catch {
        // It has gone.
      }
      socket.close();
    }
  }

  /** @returns undefined while no process of this user waits */
  private next(): UnixSocket | undefined {
    for (;;) {
      let socket: UnixSocket | undefined;
      try {
        socket = this.init.listener.accept();
      } catch {
        // Too many open files, and the like, are as if it had not come: it tries again.
      }
      if (socket === undefined || socket.identity().isOwnUser) return socket;
      socket.close();
    }
  }

  private accept(domain: HostDomain): void {
    for (let socket = this.next(); socket !== undefined; socket = this.next()) {
      const { closeDescriptor } = this.init;
      const caller: Caller = new Caller(domain, socket, closeDescriptor, () => {
        this.callers.delete(caller);
        this.endIfEmpty();
      });
      this.callers.add(caller);
    }
  }

  private endIfEmpty(): void {
    if (this.callers.size > 0 || this.ended) return;
    this.ended = true;
    this.init.onEmpty();
  }
}

class Caller {
  private readonly opener: Opener;
  /** Messages for which the opener's queue has no room. */
  private readonly waiting: (Note | Answer)[] = [];
  private ended = false;

  constructor(
    private readonly domain: HostDomain,
    private readonly socket: UnixSocket,
    private readonly closeDescriptor: (descriptor: number) => void,
    private readonly onEnd: () => void,
  ) {
    this.opener = domain.enter((note) => this.send(note));
    socket.watch(() => this.read());
  }

  private read(): void {
    try {
      while (!this.ended) {
        const message = this.socket.take();
        if (message === undefined) return;
        if (message === null) break;
        this.take(message.bytes, message.descriptors);
      }
    } catch {
      // A message that is not ours ends this opener, and no other.
    }
    this.end();
  }

  /** @throws SpiError what was sent is no good */
  private take(bytes: Uint8Array, descriptors: readonly number[]): void {
    try {
      const message = decode(bytes);
      if ('op' in message) this.answer(message.id, message, descriptors);
      else if ('note' in message && message.note === 'look') this.domain.look(this.opener);
      else throw new SpiError('EINVAL', 'an opener asks, or says "look"');
    } finally {
      for (const descriptor of descriptors) this.closeDescriptor(descriptor);
    }
  }

  private answer(id: number, ...[request, descriptors]: Requested): void {
    try {
      const value = this.domain.request(this.opener, request, descriptors);
      this.send({ answer: id, ...(value !== undefined && { value }) });
    } catch (error) {
      const known = error instanceof SpiError;
      const { code, message } = known ? error : new SpiError('EIO', String(error));
      this.send({ answer: id, code, message });
    }
  }

  private send(message: Note | Answer): void {
    if (this.ended) return;
    if (this.waiting.length === 0 && this.trySend(message)) return;
    const isLook = (one: Note | Answer): boolean => 'note' in one && one.note === 'look';
    if (isLook(message) && this.waiting.some(isLook)) return;
    if (this.waiting.push(message) > MOST_WAITING) this.end();
    if (this.waiting.length === 1) setTimeout(() => this.sendWaiting(), RETRY_MS);
  }

  private sendWaiting(): void {
    while (!this.ended && this.waiting.length > 0 && this.trySend(this.waiting[0]!)) {
      this.waiting.shift();
    }
    if (!this.ended && this.waiting.length > 0) setTimeout(() => this.sendWaiting(), RETRY_MS);
  }

  private trySend(message: Note | Answer): boolean {
    try {
      return this.socket.send(encode(message), []);
    } catch {
      // Its end is read, too.
      return true;
    }
  }

  private end(): void {
    if (this.ended) return;
    this.ended = true;
    this.socket.close();
    this.domain.leave(this.opener);
    this.onEnd();
  }
}

type Requested = [request: Parameters<HostDomain['request']>[1], descriptors: readonly number[]];
