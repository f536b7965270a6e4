/**
 * What a message allocates on the whole path, at both ends: 64 B messages between two processes, 64
 * in flight. SENDs over softroce, each completion consumed in one way of delivery after another;
 * messages of dapl/flow and its channels; requests and answers over these, and over peers of Node.
 *
 *   npm run bench:alloc -- [--messages N]
 *
 * Connecting, memory and what the just-in-time compiler needs are in it, a few MB in all: over ten
 * million messages less than a byte each.
 */
import { pathToFileURL } from 'node:url';
import { Command } from 'commander';
import { positive } from './compare/arguments.js';
import { type Cell, type CellOptions, cell, type Workload } from './compare/cells.js';
import { CONTENDERS } from './compare/contender.js';
import type { Count, Target } from './compare/end.js';
import { figure, layOut } from './compare/report.js';
import { WorkerProcess } from './compare/worker-process.js';

interface Allocation {
  readonly way: string;
  readonly messages: number;
  readonly bytesPerMessage: { readonly sender: number; readonly receiver: number };
}

const ADAPTIVE: CellOptions = { polling: 'adaptive' };
const way = (contender: string, workload: Workload, options: CellOptions): Cell =>
  cell(contender, workload, 64, options);

/** Those of one contender stand together: they have its processes one after the other. */
export const WAYS: Readonly<Record<string, Cell>> = {
  'dequeueInto, spin': way('softroce', 'send', { polling: 'spin' }),
  'upcall NOTIFY + dequeueInto, event': way('softroce', 'send', { polling: 'event' }),
  'events$, adaptive': way('softroce', 'send', { ...ADAPTIVE, delivery: 'events$' }),
  'for await, adaptive': way('softroce', 'send', { ...ADAPTIVE, delivery: 'for-await' }),
  'conn.send and receive, copied': way('flow', 'send', ADAPTIVE),
  'request and answer, conn': way('flow', 'calls', ADAPTIVE),
  'conn.send and receive, lent': way('flow-lend', 'send', ADAPTIVE),
  'channel.send and receive': way('channel', 'send', ADAPTIVE),
  'request and answer, channel': way('channel', 'calls', ADAPTIVE),
  'request and answer, Node TCP, framed': way('node-framed', 'calls', {}),
  'request and answer, ws': way('node-ws', 'calls', {}),
};

/** To warm up, and to learn how long so many messages take. */
const TRIAL_SECONDS = 1;

interface AllocationOptions {
  /** Of each way. */
  readonly messages: number;
  readonly ways?: Readonly<Record<string, Cell>>;
  readonly trialSeconds?: number;
  /** The first three numbers of the local addresses; default 127.0.0. */
  readonly network?: string;
}

export async function measureAllocation(options: AllocationOptions): Promise<Allocation[]> {
  const { ways = WAYS, network = '127.0.0' } = options;
  const results: Allocation[] = [];
  for (const contender of new Set(Object.values(ways).map((each) => each.contender))) {
    const own = Object.entries(ways).filter(([, work]) => work.contender === contender);
    const pair = new Pair(CONTENDERS[contender]!.kind!, [`${network}.1`, `${network}.2`]);
    try {
      await pair.ready();
      for (const [name, work] of own) results.push(await measureWay(pair, name, work, options));
      await pair.close();
    } finally {
      pair.kill();
    }
  }
  return results;
}

async function measureWay(
  pair: Pair,
  name: string,
  work: Cell,
  { messages, trialSeconds = TRIAL_SECONDS }: AllocationOptions,
): Promise<Allocation> {
  const trial = await pair.run(work, trialSeconds);
  await pair.countAllocation();
  const run = await pair.run(work, (messages * trial.seconds) / trial.messages);
  const [sender, receiver] = await pair.allocated();
  const bytesPerMessage = { sender: sender / run.messages, receiver: receiver / run.messages };
  return { way: name, messages: run.messages, bytesPerMessage };
}

class Pair {
  private readonly client: WorkerProcess;
  private readonly server: WorkerProcess;

  /** @param kind that the worker knows */
  constructor(kind: string, [left, right]: readonly [string, string]) {
    this.client = new WorkerProcess(kind, left, right, { core: 0 });
    this.server = new WorkerProcess(kind, right, left, { core: 1 });
  }

  async ready(): Promise<void> {
    await Promise.all([this.client.answer(), this.server.answer()]);
  }

  async run(work: Cell, seconds: number): Promise<Count> {
    const target = (await this.server.ask({ call: 'listen', cell: work })).value as Target;
    const call = { call: 'run', cell: work, target, seconds } as const;
    const count = (await this.client.ask(call, seconds * 1000 + 30_000)).value as Count;
    await this.server.ask({ call: 'stop' });
    await this.client.ask({ call: 'stop' });
    return count;
  }

  async countAllocation(): Promise<void> {
    await this.client.ask({ call: 'count-allocation' });
    await this.server.ask({ call: 'count-allocation' });
  }

  /** Bytes at the sender and at the receiver: of requests, at the client and at the server. */
  async allocated(): Promise<[number, number]> {
    const sender = await this.client.ask({ call: 'allocated' });
    const receiver = await this.server.ask({ call: 'allocated' });
    return [sender.value as number, receiver.value as number];
  }

  async close(): Promise<void> {
    await Promise.all([this.client.close(), this.server.close()]);
  }

  kill(): void {
    this.client.kill();
    this.server.kill();
  }
}

async function main(): Promise<void> {
  const program = new Command('bench:alloc')
    .description('bytes that a message allocates, for each way of sending and receiving')
    .option('--messages <n>', 'of each way', positive, 10_000_000)
    .option('--markdown', 'prints the table as Markdown')
    .parse();
  const { messages, markdown } = program.opts<{ messages: number; markdown?: true }>();
  const results = await measureAllocation({ messages });
  const headings = ['way', 'messages', 'bytes a message, sender', 'receiver'];
  const lines = results.map(({ way: name, messages: count, bytesPerMessage }) => {
    const { sender, receiver } = bytesPerMessage;
    return [name, String(count), figure(sender), figure(receiver)];
  });
  process.stdout.write(`${layOut(headings, lines, markdown ? 'markdown' : 'text')}\n`);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) await main();
