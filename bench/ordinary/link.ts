/** Programs that people write, and the connections between their two sides. */
import type { Usage } from './usage.js';

/** The work of a row. */
export interface Job {
  /**
   * `ask`: requests and answers. `send`: one way. `connect`: connect and close. `paced`: requests
   * at a rate.
   */
  readonly work: 'ask' | 'send' | 'connect' | 'paced';
  readonly bytes: number;
  /** In flight on each connection; of `connect`, connections at once. */
  readonly depth: number;
  readonly connections: number;
  /** Requests a second; `paced` only. */
  readonly rate: number;
  /** Messages are made by JSON.stringify and read by JSON.parse. */
  readonly isJson: boolean;
}

/** A connection, with messages that keep their boundaries. */
export interface Link {
  /** Resolves when the program may forget the message. */
  send(message: Uint8Array): Promise<void>;
  /** Messages in order. Rejects when the connection has ended. */
  receive(): Promise<Uint8Array>;
  close(): Promise<void>;
}

/** One side of a program. */
export interface Program {
  /** @returns the port */
  listen(job: Job, take: (link: Link) => void): Promise<number>;
  connect(job: Job, port: number): Promise<Link>;
  /** Counters of its device; absent without one, and in a build that has none. */
  counters?(): Readonly<Record<string, number>> | undefined;
  /** Further processes of this side. */
  others?(): Promise<Usage>;
  close(): Promise<void>;
}

/** Messages that have come by callbacks, for a reader that awaits each. */
export class Inbox {
  private readonly messages: Uint8Array[] = [];
  private readonly readers: PromiseWithResolvers[] = [];
  private isOver = false;

  push(message: Uint8Array): void {
    const reader = this.readers.shift();
    if (reader === undefined) this.messages.push(message);
    else reader.resolve(message);
  }

  end(): void {
    this.isOver = true;
    for (const reader of this.readers.splice(0)) reader.reject(ended());
  }

  receive(): Promise<Uint8Array> {
    const message = this.messages.shift();
    if (message !== undefined) return Promise.resolve(message);
    if (this.isOver) return Promise.reject(ended());
    return new Promise((resolve, reject) => this.readers.push({ resolve, reject }));
  }
}

interface PromiseWithResolvers {
  readonly resolve: (message: Uint8Array) => void;
  readonly reject: (error: Error) => void;
}

function ended(): Error {
  return new Error('the connection has ended');
}
