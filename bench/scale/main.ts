/**
 * Many endpoints: two processes over softroce on loopback, each with all the endpoints of one side.
 * Connect and teardown rates, bytes an endpoint, and what a message costs when more and more
 * endpoints share the same load.
 *
 *   npm run bench:scale -- [--endpoints N] [--seconds S] [--network A.B.C] [--json FILE]
 */
import { writeFile } from 'node:fs/promises';
import { pathToFileURL } from 'node:url';
import { Command } from 'commander';
import { positive } from '../compare/arguments.js';
import { Peer } from './peer.js';
import type { Answer, Memory, Shape, Work } from './protocol.js';
import { type Idle, type Sharing, type ShapeResult, report } from './report.js';

/** Enough for two messages under way and the receives that this benchmark posts. */
const SMALL: Shape = { name: '4 requests, 2 receives', requests: 4, receives: 2, segments: 1 };
const DEFAULT: Shape = { name: 'default attributes' };
/** Endpoints of the default shape that are measured: theirs is a matter of bytes each. */
const DEFAULT_COUNT = 1000;
const IN_FLIGHT = 64;

export interface ScaleOptions {
  readonly endpoints: number;
  /** Of each measurement of messages. */
  readonly seconds: number;
  /** The first three numbers of the local addresses; default 127.0.0. */
  readonly network?: string;
  readonly onStep?: (step: string) => void;
}

export interface ScaleResult {
  readonly shapes: readonly ShapeResult[];
  readonly sharing: readonly Sharing[];
  readonly idle: readonly Idle[];
}

export async function runScale(options: ScaleOptions): Promise<ScaleResult> {
  const { endpoints, network = '127.0.0', onStep } = options;
  const most = Math.max(endpoints, Math.min(endpoints, DEFAULT_COUNT));
  const [left, right] = [`${network}.1`, `${network}.2`];
  const pair = {
    active: await Peer.open(left, right, most, 'active'),
    passive: await Peer.open(right, left, most, 'passive'),
  };
  try {
    const shapes: ShapeResult[] = [];
    const sharing: Sharing[] = [];
    const few = Math.min(endpoints, DEFAULT_COUNT);
    const share = async (): Promise<void> => {
      for (const spread of [1, 100, 1000, 10_000].filter((n) => n <= endpoints)) {
        onStep?.(`messages over ${spread}`);
        sharing.push(await measureSharing(pair, spread, options.seconds));
      }
    };
    // The first use of anything costs what is not the endpoints'.
    await measureShape(pair, SMALL, Math.min(endpoints, 200), undefined, undefined);
    shapes.push(await measureShape(pair, SMALL, endpoints, onStep, share));
    shapes.push(await measureShape(pair, DEFAULT, few, onStep, undefined));
    const idle = await measureIdle(pair, endpoints, options.seconds, onStep);
    await Promise.all([pair.active.close(), pair.passive.close()]);
    return { shapes, sharing, idle };
  } finally {
    pair.active.kill();
    pair.passive.kill();
  }
}

interface Pair {
  readonly active: Peer;
  readonly passive: Peer;
}

async function measureShape(
  { active, passive }: Pair,
  shape: Shape,
  count: number,
  onStep: ((step: string) => void) | undefined,
  whileConnected: (() => Promise<void>) | undefined,
): Promise<ShapeResult> {
  const both = async (call: 'memory'): Promise<[Memory, Memory]> => [
    (await active.ask({ call })).value as Memory,
    (await passive.ask({ call })).value as Memory,
  ];
  onStep?.(`${count} endpoints of ${shape.name}`);
  const before = await both('memory');
  await passive.ask({ call: 'create', shape, count });
  const created = (await active.ask({ call: 'create', shape, count })).value as Work;
  await passive.ask({ call: 'listen' });
  const made = await both('memory');
  const connected = (await active.ask({ call: 'connect' })).value as Work;
  const during = await both('memory');
  await whileConnected?.();
  const ended = (await active.ask({ call: 'disconnect' })).value as Work;
  await passive.ask({ call: 'disconnected' });
  await passive.ask({ call: 'free' });
  const freed = (await active.ask({ call: 'free' })).value as Work;
  const after = await both('memory');
  const bytes = (now: readonly [Memory, Memory], side: 0 | 1): Memory =>
    perEndpoint(before[side], now[side], count);
  return {
    shape: shape.name,
    count,
    createPerSecond: created.count / created.seconds,
    connectPerSecond: connected.count / connected.seconds,
    disconnectPerSecond: ended.count / ended.seconds,
    freePerSecond: freed.count / freed.seconds,
    created: bytes(made, 0),
    active: bytes(during, 0),
    passive: bytes(during, 1),
    timewait: bytes(after, 0),
  };
}

/** One active endpoint beside more and more that are connected and idle; and beside regions. */
async function measureIdle(
  pair: Pair,
  endpoints: number,
  seconds: number,
  onStep: ((step: string) => void) | undefined,
): Promise<Idle[]> {
  const { active, passive } = pair;
  const rows: Idle[] = [];
  const measure = async (what: Idle['what'], count: number): Promise<void> => {
    onStep?.(`one endpoint among ${count} ${what}`);
    rows.push({ what, count, ...(await measureSharing(pair, 1, seconds)) });
  };
  for (const count of [1, 10, 100, 1000, 10_000].filter((n) => n <= endpoints)) {
    await measureShape(pair, SMALL, count, undefined, () => measure('endpoints', count));
  }
  await measureShape(pair, SMALL, 1, undefined, async () => {
    for (const count of [1, 100, 10_000, 100_000].filter((n) => n <= 10 * endpoints)) {
      await active.ask({ call: 'regions', count });
      await passive.ask({ call: 'regions', count });
      await measure('regions', count);
    }
  });
  return rows;
}

function perEndpoint(before: Memory, after: Memory, count: number): Memory {
  return {
    heap: (after.heap - before.heap) / count,
    arrayBuffers: (after.arrayBuffers - before.arrayBuffers) / count,
    external: (after.external - before.external) / count,
    resident: (after.resident - before.resident) / count,
  };
}

async function measureSharing(pair: Pair, spread: number, seconds: number): Promise<Sharing> {
  const { active, passive } = pair;
  const call = { call: 'send', spread, inFlight: IN_FLIGHT } as const;
  const begun = await passive.ask({ ...call, seconds });
  const warm = await active.ask({ ...call, seconds: seconds / 4 });
  const run: Answer = await active.ask({ ...call, seconds });
  const served = await passive.ask({ ...call, seconds });
  const work = run.value as Work;
  const all = (warm.value as Work).count + work.count;
  return {
    spread,
    messagesPerSecond: work.count / work.seconds,
    senderNs: ((run.cpuSeconds - warm.cpuSeconds) / work.count) * 1e9,
    receiverNs: ((served.cpuSeconds - begun.cpuSeconds) / all) * 1e9,
  };
}

interface Arguments {
  readonly endpoints: number;
  readonly seconds: number;
  readonly network: string;
  readonly json?: string;
}

async function main(): Promise<void> {
  const program = new Command('bench:scale')
    .description('many endpoints over softroce, between two processes on loopback')
    .option('--endpoints <n>', 'of each process', positive, 10_000)
    .option('--seconds <s>', 'of each measurement of messages', positive, 2)
    .option('--network <prefix>', 'first three numbers of the local addresses', '127.0.0')
    .option('--json <file>', 'writes all measurements')
    .parse();
  const { endpoints, seconds, network, json } = program.opts<Arguments>();
  const onStep = (step: string): void => void process.stderr.write(`${step}\n`);
  const result = await runScale({ endpoints: Math.ceil(endpoints), seconds, network, onStep });
  process.stdout.write(`${report(result.shapes, result.sharing, result.idle)}\n`);
  if (json !== undefined) await writeFile(json, `${JSON.stringify(result, null, 2)}\n`);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  try {
    await main();
  } catch (error) {
    process.stderr.write(
      `bench:scale: ${error instanceof Error ? error.message : String(error)}\n`,
    );
    process.exitCode = 1;
  }
}
