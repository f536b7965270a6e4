/** The same messages to many readers: a slow one delays no other. */
import { checkOptions, kinds, type Kinds, leaveUnhandled } from 'dapl/spi';
import { refusalOf } from './options.js';

/** A connection, or a channel. */
export interface Reader {
  send(bytes: Uint8Array): Promise<void>;
  close(options?: { readonly timeoutMs?: number }): Promise<void>;
}

/** Options of `new Broadcast`. */
export interface BroadcastOptions<R extends Reader = Reader> {
  /** Messages that wait for one reader: 1 to 1,000,000, default 100. */
  readonly maxWaiting?: number;
  /**
   * The action when a reader has that many waiting messages: `close` ends its connection (default),
   * `drop` skips the message for it.
   */
  readonly whenFull?: 'close' | 'drop';
  /** Hears of each message that a slow reader did not get. */
  readonly onSlow?: (reader: R) => void;
}

const { FUNCTION, instanceOf, integer, kindOf, oneOf, optional } = kinds;
const KINDS: Kinds<BroadcastOptions> = {
  maxWaiting: optional(integer(1, 1_000_000)),
  whenFull: optional(oneOf(['close', 'drop'])),
  onSlow: optional(FUNCTION),
};
const BYTES = { bytes: instanceOf(Uint8Array, 'a Uint8Array') };
const READER = {
  reader: kindOf('a connection or a channel', (value) => {
    const given = value as Partial<Reader> | null | undefined;
    return typeof given?.send === 'function' && typeof given.close === 'function';
  }),
};
const MAX_WAITING = 100;
/** Messages that one reader is sent before it has the first of them. */
const IN_FLIGHT = 8;

/** Readers of the same messages. Each gets them in order, as fast as it takes them. */
export class Broadcast<R extends Reader = Reader> {
  private readonly queues = new Map<R, Queue>();
  private readonly maxWaiting: number;

  /** @throws FlowError DAT_INVALID_PARAMETER */
  constructor(private readonly options: BroadcastOptions<R> = {}) {
    checkOptions(options as BroadcastOptions, KINDS, refusalOf('Broadcast'));
    this.maxWaiting = options.maxWaiting ?? MAX_WAITING;
  }

  /** Number of readers. */
  get size(): number {
    return this.queues.size;
  }

  /**
   * Adds a reader, for the messages from now on. It is removed when its connection has ended.
   * @throws FlowError DAT_INVALID_PARAMETER
   */
  add(reader: R): this {
    checkOptions({ reader }, READER, refusalOf('broadcast.add'));
    if (!this.queues.has(reader)) {
      this.queues.set(reader, new Queue(reader, () => this.queues.delete(reader)));
    }
    return this;
  }

  /** Removes a reader, whose connection stays open; false if it was none. */
  delete(reader: R): boolean {
    this.queues.get(reader)?.clear();
    return this.queues.delete(reader);
  }

  has(reader: R): boolean {
    return this.queues.has(reader);
  }

  /** Messages that wait for a reader. */
  waiting(reader: R): number {
    return this.queues.get(reader)?.waiting ?? 0;
  }

  /**
   * Sends to all readers, without waiting for any.
   * @param bytes are copied, once for all readers
   * @throws FlowError DAT_INVALID_PARAMETER
   */
  send(bytes: Uint8Array): void {
    checkOptions({ bytes }, BYTES, refusalOf('broadcast.send'));
    const copy = Uint8Array.from(bytes);
    for (const [reader, queue] of [...this.queues]) {
      if (queue.waiting < this.maxWaiting) {
        queue.push(copy);
        continue;
      }
      if (this.options.whenFull !== 'drop') {
        this.delete(reader);
        leaveUnhandled(reader.close({ timeoutMs: 0 }));
      }
      this.options.onSlow?.(reader);
    }
  }

  /**
   * Sends what waits, and closes all connections.
   * @param timeoutMs after which a connection ends at once; default 5000
   */
  async close({ timeoutMs = 5000 }: { readonly timeoutMs?: number } = {}): Promise<void> {
    const all = [...this.queues];
    this.queues.clear();
    await Promise.all(all.map(([, queue]) => queue.close(timeoutMs)));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** Messages for one reader. */
class Queue {
  private messages: Uint8Array[] = [];
  private inFlight = 0;
  private onEmpty: (() => void) | undefined;

  constructor(
    private readonly reader: Reader,
    private readonly onEnd: () => void,
  ) {}

  get waiting(): number {
    return this.messages.length;
  }

  push(message: Uint8Array): void {
    this.messages.push(message);
    this.pump();
  }

  clear(): void {
    this.messages = [];
  }

  async close(timeoutMs: number): Promise<void> {
    const untilMs = performance.now() + timeoutMs;
    if (this.messages.length > 0 && timeoutMs > 0) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, timeoutMs);
        this.onEmpty = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    this.clear();
    await this.reader.close({ timeoutMs: Math.max(0, untilMs - performance.now()) });
  }

  private pump(): void {
    while (this.inFlight < IN_FLIGHT && this.messages.length > 0) {
      this.inFlight++;
      this.reader.send(this.messages.shift()!).then(this.onSent, this.onFailed);
    }
    if (this.messages.length === 0) this.onEmpty?.();
  }

  private readonly onSent = (): void => {
    this.inFlight--;
    this.pump();
  };

  /** The connection has ended, or takes no message of that length. */
  private readonly onFailed = (): void => {
    this.inFlight--;
    this.clear();
    this.onEmpty?.();
    this.onEnd();
    leaveUnhandled(this.reader.close({ timeoutMs: 0 }));
  };
}
