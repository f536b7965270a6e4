/** What the two sides of a connection in promises do with it: loops of `send` and `receive`. */
import type { Cell } from '../compare/cells.js';
import type { Count } from '../compare/end.js';
import { HalfRoundTrips } from '../compare/half-round-trips.js';
import { LOOKS, StreamClock } from '../compare/stream-clock.js';

/** What connections and channels have in common. */
interface Link<D, M> {
  send(data: D): Promise<void>;
  receive(): Promise<M>;
  close(): Promise<void>;
}

/** What becomes of messages. */
interface Treatment<D, M> {
  /** What the server answers it with. */
  answer(message: M): D;
  /** There is no use for it any more. */
  done(message: M): void;
  /** The link has ended. */
  free(): void;
}

/** A talk, whatever its messages are. */
export interface TalkRole {
  /** The client's part, for so many seconds. */
  run(seconds: number): Promise<Count>;
  /** The server's part, until the connection ends. */
  serve(): Promise<void>;
  close(): Promise<void>;
}

export class Talk<D, M> implements TalkRole {
  /** @param payloads as many as are in flight */
  constructor(
    private readonly link: Link<D, M>,
    private readonly cell: Cell,
    private readonly payloads: readonly D[],
    private readonly treatment: Treatment<D, M>,
  ) {}

  /** @throws Error for a workload that is not one of messages */
  run(seconds: number): Promise<Count> {
    const { workload, name } = this.cell;
    if (workload === 'ping') return this.ping(seconds);
    if (workload === 'calls') return this.calls(seconds);
    if (workload === 'send') return this.stream(seconds);
    throw new Error(`${name}: no workload of messages`);
  }

  /** Answers leave without waiting for the one before to arrive. */
  async serve(): Promise<void> {
    const { link, treatment } = this;
    const answers = this.cell.workload !== 'send';
    // What breaks the connection ends the next receive, too.
    const ignore = (): void => undefined;
    for (;;) {
      const message = await link.receive();
      if (answers) link.send(treatment.answer(message)).catch(ignore);
      treatment.done(message);
    }
  }

  async close(): Promise<void> {
    await this.link.close();
    this.treatment.free();
  }

  private async ping(seconds: number): Promise<Count> {
    const { link, treatment } = this;
    const [payload] = this.payloads as [D];
    const times = new HalfRoundTrips(seconds);
    times.start();
    for (;;) {
      await link.send(payload);
      treatment.done(await link.receive());
      if (!times.lap()) return times.count();
    }
  }

  private async calls(seconds: number): Promise<Count> {
    const { link, treatment } = this;
    return this.inFlight(seconds, async (payload) => {
      await link.send(payload);
      treatment.done(await link.receive());
    });
  }

  private async stream(seconds: number): Promise<Count> {
    const { link } = this;
    return this.inFlight(seconds, (payload) => link.send(payload));
  }

  /** As many at a time as there are payloads, each begun when its former one is over. */
  private async inFlight(seconds: number, one: (payload: D) => Promise<void>): Promise<Count> {
    const clock = new StreamClock(seconds);
    let messages = 0;
    let isOver = false;
    const repeat = async (payload: D): Promise<void> => {
      while (!isOver) {
        await one(payload);
        messages += 1;
        if (!isOver && messages % LOOKS === 0) isOver = clock.isOver(messages);
      }
    };
    await Promise.all(this.payloads.map(repeat));
    return clock.count(messages);
  }
}
