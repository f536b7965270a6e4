/**
 * What a message allocates on the whole path, at both ends: 64 B SENDs over softroce between two
 * processes, 64 in flight, each completion consumed in one way of delivery after another.
 *
 *   npm run bench:alloc -- [--messages N]
 *
 * Connecting, memory and what the just-in-time compiler needs are in it, a few MB in all: over ten
 * million messages less than a byte each.
 */
import { pathToFileURL } from 'node:url';
import { Command, InvalidArgumentError } from 'commander';
import { type CellOptions, cell } from './compare/cells.js';
import type { Count, Target } from './compare/end.js';
import { figure, layOut } from './compare/report.js';
import { WorkerProcess } from './compare/worker-process.js';

interface Allocation {
  readonly way: string;
  readonly messages: number;
  readonly bytesPerMessage: { readonly sender: number; readonly receiver: number };
}

const WAYS: Readonly<Record<string, CellOptions>> = {
  'dequeueInto, spin': { polling: 'spin' },
  'upcall NOTIFY + dequeueInto, event': { polling: 'event' },
  'events$, adaptive': { polling: 'adaptive', delivery: 'events$' },
  'for await, adaptive': { polling: 'adaptive', delivery: 'for-await' },
};

/** To warm up, and to learn how long so many messages take. */
const TRIAL_SECONDS = 1;

export async function measureAllocation(
  messages: number,
  trialSeconds = TRIAL_SECONDS,
  network = '127.0.0',
): Promise<Allocation[]> {
  const [left, right] = [`${network}.1`, `${network}.2`];
  const pair = new Pair(
    new WorkerProcess('native', left, right, 0),
    new WorkerProcess('native', right, left, 1),
  );
  try {
    await pair.ready();
    const results: Allocation[] = [];
    for (const [way, options] of Object.entries(WAYS)) {
      const trial = await pair.run(options, trialSeconds);
      await pair.countAllocation();
      const run = await pair.run(options, (messages * trial.seconds) / trial.messages);
      const [sender, receiver] = await pair.allocated();
      const bytesPerMessage = {
        sender: sender / run.messages,
        receiver: receiver / run.messages,
      };
      results.push({ way, messages: run.messages, bytesPerMessage });
    }
    await pair.close();
    return results;
  } finally {
    pair.kill();
  }
}

class Pair {
  constructor(
    private readonly client: WorkerProcess,
    private readonly server: WorkerProcess,
  ) {}

  async ready(): Promise<void> {
    await Promise.all([this.client.answer(), this.server.answer()]);
  }

  async run(options: CellOptions, seconds: number): Promise<Count> {
    const work = cell('softroce', 'send', 64, options);
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

  /** Bytes at the sender and at the receiver. */
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

function positive(text: string): number {
  const value = Number(text);
  if (value > 0 && Number.isFinite(value)) return value;
  throw new InvalidArgumentError('a positive number is due.');
}

async function main(): Promise<void> {
  const program = new Command('bench:alloc')
    .description('bytes that a message allocates, for each way of delivery')
    .option('--messages <n>', 'of each way', positive, 10_000_000)
    .option('--markdown', 'prints the table as Markdown')
    .parse();
  const { messages, markdown } = program.opts<{ messages: number; markdown?: true }>();
  const results = await measureAllocation(messages);
  const headings = ['way', 'messages', 'bytes a message, sender', 'receiver'];
  const lines = results.map(({ way, messages: count, bytesPerMessage }) => {
    const { sender, receiver } = bytesPerMessage;
    return [way, String(count), figure(sender), figure(receiver)];
  });
  process.stdout.write(`${layOut(headings, lines, markdown ? 'markdown' : 'text')}\n`);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) await main();
