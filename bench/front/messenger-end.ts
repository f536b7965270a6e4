/** Peers of Node that have messages: requests and answers, told by callbacks. */
import { AwakeLoop } from '../compare/awake-loop.js';
import type { Cell } from '../compare/cells.js';
import type { Count, End, Target } from '../compare/end.js';
import { HalfRoundTrips } from '../compare/half-round-trips.js';
import { LOOKS, StreamClock } from '../compare/stream-clock.js';

/** One side of a connection. */
export interface Messenger {
  send(message: Uint8Array): void;
  onMessage(take: (message: Uint8Array) => void): void;
  onError(failed: (error: Error) => void): void;
  /** At once. */
  close(): void;
}

/** How such connections are made. */
export interface Messengers {
  /** @returns its port */
  listen(host: string, accept: (messenger: Messenger) => void): Promise<number>;
  /** Listens no more. */
  unlisten(): void;
  connect(host: string, port: number): Promise<Messenger>;
}

export class MessengerEnd implements End {
  private readonly awake = new AwakeLoop();
  private readonly open: Messenger[] = [];

  constructor(
    private readonly messengers: Messengers,
    private readonly local: string,
    private readonly remote: string,
  ) {}

  async listen(cell: Cell): Promise<Target> {
    this.awake.begin(cell);
    const port = await this.messengers.listen(this.local, (messenger) => {
      this.open.push(messenger);
      // The client is told of an error, too.
      messenger.onError(() => undefined);
      messenger.onMessage((message) => messenger.send(message));
    });
    return { port, address: 0n, rmrContext: 0 };
  }

  async run(cell: Cell, { port }: Target, seconds: number): Promise<Count> {
    this.awake.begin(cell);
    const messenger = await this.messengers.connect(this.remote, port);
    this.open.push(messenger);
    return new Promise((resolve, reject) => {
      messenger.onError(reject);
      if (cell.workload === 'ping') ping(messenger, cell, seconds, resolve);
      else if (cell.workload === 'calls') calls(messenger, cell, seconds, resolve);
      else reject(new Error(`${cell.name}: requests and answers alone`));
    });
  }

  stop(): Promise<void> {
    this.awake.end();
    this.messengers.unlisten();
    for (const messenger of this.open.splice(0)) messenger.close();
    return Promise.resolve();
  }

  close(): Promise<void> {
    return this.stop();
  }
}

type Done = (count: Count) => void;

function ping(messenger: Messenger, { bytes }: Cell, seconds: number, done: Done): void {
  const payload = Buffer.alloc(bytes, 1);
  const times = new HalfRoundTrips(seconds);
  messenger.onMessage(() => {
    if (times.lap()) messenger.send(payload);
    else done(times.count());
  });
  times.start();
  messenger.send(payload);
}

function calls(messenger: Messenger, { bytes, depth }: Cell, seconds: number, done: Done): void {
  const payload = Buffer.alloc(bytes, 1);
  const clock = new StreamClock(seconds);
  let messages = 0;
  let inFlight = depth;
  let isOver = false;
  messenger.onMessage(() => {
    messages += 1;
    if (!isOver && messages % LOOKS === 0) isOver = clock.isOver(messages);
    if (!isOver) messenger.send(payload);
    else if (--inFlight === 0) done(clock.count(messages));
  });
  for (let i = 0; i < depth; i++) messenger.send(payload);
}
