/**
 * An opener's connection to the host process. Most calls of the device interface are synchronous,
 * so a request waits for its answer; notes that arrive meanwhile are kept for the event loop. The
 * request that opens a domain does not wait: the host may not have started yet.
 */
import { SpiError } from '../../../core/spi/index.js';
import type { UnixSocket } from '../../host/index.js';
import { type Answer, decode, encode, type Note, type Request } from './messages.js';

/** A host that has started answers within microseconds, unless it is stopped. */
const ANSWER_MS = 20_000;
const FIRST_SLEEP_MS = 0.05;
const LAST_SLEEP_MS = 2;

export interface HostLinkInit {
  readonly socket: UnixSocket;
  /** Lets others of this thread answer whom the host may be waiting for. */
  readonly turn: () => void;
  readonly onNote: (note: Note) => void;
  /** The host has ended, or says what none says. Once. */
  readonly onEnd: () => void;
  /** Default 20,000. */
  readonly answerMs?: number;
}

export class HostLink {
  private readonly socket: UnixSocket;
  private readonly notes: Note[] = [];
  /** Requests that the host has, and whose caller has been told that it does not answer. */
  private readonly givenUp = new Map<number, Request>();
  /** Handlers of the answers that the event loop receives. */
  private readonly askedLater = new Map<number, (answer: Answer | SpiError) => void>();
  private readonly answerMs: number;
  private number = 0;
  private ended = false;

  constructor(private readonly init: HostLinkInit) {
    this.socket = init.socket;
    this.answerMs = init.answerMs ?? ANSWER_MS;
    this.socket.watch(() => this.read());
  }

  /** @throws SpiError of the host; ('EIO') it has ended; ('ETIMEDOUT') */
  ask(request: Request, descriptors: readonly number[] = []): unknown {
    const id = this.nextNumber();
    const bytes = encode({ ...request, id });
    let answer: Answer | undefined;
    this.waitFor(() => this.trySend(bytes, descriptors));
    try {
      this.waitFor(() => (answer = this.answerTo(id)) !== undefined);
    } catch (error) {
      this.givenUp.set(id, request);
      throw error;
    } finally {
      this.deliverSoon();
    }
    return valueOf(answer!);
  }

  /** As `ask`, of the first thing that is asked, without waiting: it rejects as `ask` throws. */
  askLater(request: Request): Promise<unknown> {
    const id = this.nextNumber();
    const bytes = encode({ ...request, id });
    return new Promise<Answer>((resolve, reject) => {
      const timer = setTimeout(() => hear(noAnswer(this.answerMs)), this.answerMs);
      const hear = (answer: Answer | SpiError): void => {
        clearTimeout(timer);
        this.askedLater.delete(id);
        if (answer instanceof SpiError) reject(answer);
        else resolve(answer);
      };
      this.askedLater.set(id, hear);
      if (!this.trySend(bytes, [])) hear(hasEnded());
    }).then(valueOf);
  }

  /** A full queue will be read, and the host then looks at all rings. */
  look(): void {
    if (!this.ended) this.trySend(LOOK, []);
  }

  close(): void {
    this.ended = true;
    this.socket.close();
  }

  private waitFor(done: () => boolean): void {
    const endMs = performance.now() + this.answerMs;
    let sleepMs = FIRST_SLEEP_MS;
    for (;;) {
      if (this.ended) throw hasEnded();
      if (done()) return;
      if (performance.now() > endMs) throw noAnswer(this.answerMs);
      if (this.ended) continue;
      this.init.turn();
      sleep(sleepMs);
      sleepMs = Math.min(2 * sleepMs, LAST_SLEEP_MS);
    }
  }

  private trySend(bytes: Uint8Array, descriptors: readonly number[]): boolean {
    try {
      return this.socket.send(bytes, descriptors);
    } catch {
      this.end();
      return false;
    }
  }

  private answerTo(id: number): Answer | undefined {
    for (;;) {
      const message = this.take();
      if (message === undefined) return undefined;
      if ('note' in message) this.notes.push(message);
      else if (message.answer === id) return message;
      else this.hear(message);
    }
  }

  private hear(answer: Answer): void {
    const asked = this.askedLater.get(answer.answer);
    if (asked) asked(answer);
    else this.undo(answer);
  }

  /** Undoes a request that succeeded after its caller had been told that it failed. */
  private undo({ answer, code, value }: Answer): void {
    const request = this.givenUp.get(answer);
    this.givenUp.delete(answer);
    if (request === undefined || code !== undefined) return;
    const undoing = undoingOf(request, value);
    // Where there is no room for it, the end of the domain does it.
    if (undoing) this.trySend(encode({ ...undoing, id: this.nextNumber() }), []);
  }

  private nextNumber(): number {
    return (this.number = (this.number + 1) >>> 0);
  }

  /** @returns undefined while nothing waits, or at the end */
  private take(): Answer | Note | undefined {
    try {
      const message = this.ended ? undefined : this.socket.receive();
      if (message === undefined) return undefined;
      if (message !== null) {
        const found = decode(message.bytes);
        if (!('op' in found)) return found;
      }
    } catch {
      // A message that is not ours ends the link, as its own end would.
    }
    this.end();
    return undefined;
  }

  private read(): void {
    for (;;) {
      const message = this.take();
      if (message === undefined) break;
      if ('note' in message) this.notes.push(message);
      else this.hear(message);
    }
    this.deliver();
  }

  private deliverSoon(): void {
    if (this.notes.length > 0) setImmediate(() => this.deliver());
  }

  private deliver(): void {
    for (const note of this.notes.splice(0)) this.init.onNote(note);
  }

  /** Ends the link, and reports it from the event loop: a request made now gets its own error. */
  private end(): void {
    if (this.ended) return;
    this.close();
    setImmediate(() => {
      for (const hear of [...this.askedLater.values()]) hear(hasEnded());
      this.deliver();
      this.init.onEnd();
    });
  }
}

/** @throws SpiError of the host */
function valueOf({ code, message = '', value }: Answer): unknown {
  if (code !== undefined) throw new SpiError(code, message);
  return value;
}

function hasEnded(): SpiError {
  return new SpiError('EIO', 'the process that hosts the XRC domain has ended');
}

function noAnswer(answerMs: number): SpiError {
  return new SpiError(
    'ETIMEDOUT',
    `the host of the XRC domain has not answered in ${answerMs} ms`,
    {
      hint: 'it may be stopped (SIGSTOP, a debugger): let it go on, or end it',
    },
  );
}

/** @returns undefined where nothing is to be taken back */
function undoingOf(request: Request, value: unknown): Request | undefined {
  switch (request.op) {
    case 'createTarget':
      return { op: 'release', qpn: value as number };
    case 'hold':
      return { op: 'release', qpn: request.qpn };
    case 'addQueue':
      return { op: 'removeQueue', srqn: request.srqn };
    case 'addRegion':
      return { op: 'removeRegion', key: request.key };
    default:
      return undefined;
  }
}

const LOOK = encode({ note: 'look' });
const NEVER = new Int32Array(new SharedArrayBuffer(4));

function sleep(ms: number): void {
  Atomics.wait(NEVER, 0, 0, ms);
}
