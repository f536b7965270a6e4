/** Our side in promises: messages over `dapl/flow` and its channels, as a stranger sends them. */
import { type Ia, openIa } from 'dapl';
import {
  type Connection,
  type ConnectionOptions,
  type ConnectOptions,
  connect,
  type Data,
  listen,
  type Listener,
  type ListenOptions,
  type Message,
} from 'dapl/flow';
import {
  acceptChannel,
  channel,
  type ChannelData,
  type ChannelOptions,
  offerChannel,
} from 'dapl/flow/channel';
import { type Cell, type Counters, serverSlots } from '../compare/cells.js';
import type { Count, End, Target } from '../compare/end.js';
import { provider } from '../compare/provider.js';
import { Talk, type TalkRole } from './talk.js';

/** Longer than anything that works takes, however busy the machine. */
const CONNECT_TIMEOUT_MS = 30_000;
/** Receives of a channel by default. */
const CHANNEL_BUFFERS = 32;

/** A way of sending messages: what a connection is made with, and what it is used by. */
interface Way {
  offer(cell: Cell): Partial<ConnectOptions>;
  accept(cell: Cell): ListenOptions;
  talk(conn: Connection, cell: Cell): TalkRole;
}

const RAW: Way = {
  offer: (cell) => rawOptions(cell, false),
  accept: (cell) => rawOptions(cell, false),
  talk: (conn, cell) =>
    new Talk<Data, Message>(conn, cell, payloads(cell), {
      answer: (message) => message.bytes,
      done: () => undefined,
      free: () => undefined,
    }),
};

/** Nothing is copied: segments are sent, and receive buffers are lent. */
const LENT: Way = {
  offer: (cell) => rawOptions(cell, true),
  accept: (cell) => rawOptions(cell, true),
  talk: (conn, cell) => {
    const { bytes, depth } = cell;
    const memory = conn.ia.allocate(depth * bytes, { pz: conn.ep.pz });
    memory.bytes.fill(1);
    const segments = Array.from({ length: depth }, (_, i) => memory.segment(i * bytes, bytes));
    return new Talk<Data, Message>(conn, cell, segments, {
      answer: () => segments[0]!,
      done: (message) => message.release(),
      free: () => memory.free(),
    });
  },
};

const CHANNEL: Way = {
  offer: (cell) => offerChannel(channelOptions(cell)),
  accept: (cell) => acceptChannel(channelOptions(cell)),
  talk: (conn, cell) =>
    new Talk<ChannelData, Uint8Array>(channel(conn), cell, payloads(cell), {
      answer: (message) => message,
      done: () => undefined,
      free: () => undefined,
    }),
};

const WAYS: Readonly<Record<string, Way>> = { flow: RAW, 'flow-lend': LENT, channel: CHANNEL };

/** Memory as DAT's end of the same cell has it. */
function rawOptions(cell: Cell, lend: boolean): ConnectionOptions {
  const buffers = serverSlots(cell);
  return { requests: buffers, receives: { buffers, bufferBytes: cell.bytes, lend } };
}

/** As a channel is without a word, unless more messages are in flight than that has room for. */
function channelOptions(cell: Cell): ChannelOptions {
  const buffers = serverSlots(cell);
  return buffers > CHANNEL_BUFFERS ? { buffers } : {};
}

function payloads({ bytes, depth }: Cell): Uint8Array[] {
  return Array.from({ length: depth }, () => new Uint8Array(bytes).fill(1));
}

export class FrontEnd implements End {
  private listener: Listener | undefined;
  private talk: TalkRole | undefined;
  private serving: Promise<void> | undefined;

  /** @param kind that the worker knows */
  static async open(kind: string, local: string, remote: string): Promise<FrontEnd> {
    const ia = await openIa(provider({ port: 'native', addresses: [local], shm: false }));
    return new FrontEnd(WAYS[kind]!, ia, remote);
  }

  private constructor(
    private readonly way: Way,
    private readonly ia: Ia,
    private readonly remote: string,
  ) {}

  async listen(cell: Cell): Promise<Target> {
    const listener = await listen(this.ia, { ...this.way.accept(cell), polling: pollingOf(cell) });
    this.listener = listener;
    this.serving = this.serve(listener, cell);
    return { port: listener.port, address: 0n, rmrContext: 0 };
  }

  async run(cell: Cell, { port }: Target, seconds: number): Promise<Count> {
    const conn = await connect(this.ia, {
      ...this.way.offer(cell),
      address: this.remote,
      port,
      polling: pollingOf(cell),
      timeoutMs: CONNECT_TIMEOUT_MS,
    });
    this.talk = this.way.talk(conn, cell);
    return this.talk.run(seconds);
  }

  async stop(): Promise<void> {
    await this.listener?.close();
    await this.talk?.close();
    await this.serving;
    this.listener = undefined;
    this.talk = undefined;
    this.serving = undefined;
  }

  counters(): Counters {
    return this.ia.deviceCounters();
  }

  async close(): Promise<void> {
    await this.ia.close('abrupt');
  }

  private async serve(listener: Listener, cell: Cell): Promise<void> {
    try {
      this.talk = this.way.talk(await listener.accept(), cell);
      await this.talk.serve();
    } catch (error) {
      if (!listener.isClosed) process.stderr.write(`the server: ${String(error)}\n`);
    }
  }
}

/** @throws Error for 'spin', which connections of `dapl/flow` do not have */
function pollingOf({ name, polling }: Cell): 'event' | 'adaptive' {
  if (polling !== 'spin') return polling;
  throw new Error(`${name}: a connection of dapl/flow does not spin`);
}
