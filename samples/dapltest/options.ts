/** The command line: dapltest's own letters, so that either program can stand in for the other. */
import { Command, InvalidArgumentError, Option } from 'commander';

import { integer, type ProviderName, providerOption } from '../command-options.js';
import type { ServerAddress } from './client.js';
import { type LimitName, type LimitOptions, LIMITS } from './limit.js';
import { DEFAULT_PORT, type PerformanceCommand, type TransactionCommand } from './messages.js';
import { isTransfer, parseOperations, parseShape } from './operations.js';

/** The local address; a client's default is the one that routes to the server. */
interface Where {
  readonly device: string | undefined;
  readonly provider: ProviderName;
}

/** The test to run, and the server. */
export type Task = Where &
  (
    | { readonly test: 'S'; readonly port: number }
    | { readonly test: 'T'; readonly server: ServerAddress; readonly command: TransactionCommand }
    | { readonly test: 'P'; readonly server: ServerAddress; readonly command: PerformanceCommand }
    | { readonly test: 'Q'; readonly server: ServerAddress }
    | { readonly test: 'L'; readonly limits: LimitOptions }
  );

const MANY = 2 ** 31 - 1;
const TESTS = {
  S: serverTask,
  T: transactionTask,
  P: performanceTask,
  Q: quitTask,
  L: limitTask,
} as const;

const USAGE = `Usage: dapltest -T <test> [options] [operations]

The test program of uDAPL; the other end may be the C program.

  -T S    server
  -T T    transaction test: sends, RDMA reads and writes of both sides
  -T P    performance test: bandwidth and latency of RDMA
  -T Q    tell a server to quit
  -T L    limit test: how many objects there may be

dapltest -T <test> --help has the options of one.
`;

/** @throws Error, in a sentence; ends the process where commander does (--help, unknown options) */
export function parseTask(argv: readonly string[]): Task {
  const [first = '', second = '', ...others] = argv;
  const [letter, rest] =
    first === '-T' ? [second, others] : [first.replace(/^-T/, ''), argv.slice(1)];
  if (first === '--help' || first === '-h') {
    process.stdout.write(USAGE);
    process.exit(0);
  }
  if (!first.startsWith('-T') || !isTest(letter)) {
    throw new Error('-T comes first: S, T, P, Q or L (--help has more)');
  }
  return TESTS[letter](rest);
}

function isTest(letter: string): letter is keyof typeof TESTS {
  return letter in TESTS;
}

function commandOf(test: keyof typeof TESTS, description: string): Command {
  return new Command(`dapltest -T ${test}`)
    .description(description)
    .option('-D, --device <ip>', 'local address')
    .option('-n, --port <number>', "port of the server's control connection", port, DEFAULT_PORT)
    .addOption(
      new Option('-R, --reliability <quality>', 'quality of service').choices(['BE']).default('BE'),
    )
    .addOption(providerOption());
}

function clientOf(test: keyof typeof TESTS, description: string): Command {
  return commandOf(test, description).requiredOption('-s, --server <ip>', 'address of the server');
}

// The next thousand ports are for the tests.
const port = integer(1, 64_535);

interface Common {
  readonly device?: string;
  readonly provider: ProviderName;
  readonly port: number;
}

type Client = Common & { readonly server: string };

function whereOf({ device, provider }: Common): Where {
  return { device, provider };
}

function serverTask(words: readonly string[]): Task {
  const command = commandOf('S', 'serve the tests of clients').parse(words, { from: 'user' });
  const { device, provider, port } = command.opts<Common>();
  if (device === undefined) throw new Error('a server needs -D, its own address');
  return { test: 'S', device, provider, port };
}

function transactionTask(words: readonly string[]): Task {
  const command = clientOf('T', 'operations of both sides, on many endpoints')
    .option('-i, --iterations <number>', 'iterations', integer(1, MANY), 1000)
    .option('-t, --threads <number>', 'threads (here: tasks)', integer(1, 1000), 1)
    .option('-w, --endpoints <number>', 'endpoints of each thread', integer(1, 1000), 1)
    .option('-V, --validate', 'check all data', false)
    .option('-P, --poll', 'poll for completions', false)
    .option('-r, --use-rsp', 'the server uses reserved service points', false)
    .argument('<operations...>', 'each: client|server SR|RR|RW [bytes [segments]] [-f]')
    .passThroughOptions()
    .parse(words, { from: 'user' });
  const options = command.opts<Client & TransactionOptions>();
  const { iterations, threads, endpoints, validate, poll, useRsp } = options;
  const operations = parseOperations(command.args, validate);
  return {
    test: 'T',
    ...whereOf(options),
    server: { address: options.server, port: options.port },
    command: {
      ...{ iterations, threads, endpointsPerThread: endpoints },
      ...{ useRsp, validate, poll, operations },
    },
  };
}

interface TransactionOptions {
  readonly iterations: number;
  readonly threads: number;
  readonly endpoints: number;
  readonly validate: boolean;
  readonly poll: boolean;
  readonly useRsp: boolean;
}

function performanceTask(words: readonly string[]): Task {
  const command = clientOf('P', 'bandwidth, then latency, of RDMA by the client')
    .addOption(
      new Option('-m, --mode <mode>', 'block (b) or poll (p)').choices(['b', 'p']).default('b'),
    )
    .option('-i, --iterations <number>', 'requests of each part', integer(1, MANY), 1000)
    .option('-p, --pipeline <number>', 'requests in flight', integer(1, MANY), MANY)
    .argument('<operation...>', 'RR|RW [bytes [segments]]')
    .parse(words, { from: 'user' });
  const options = command.opts<Client & PerformanceOptions>();
  const [transfer = '', ...shape] = command.args;
  const fail = (why: string): never => {
    throw new Error(`operation "${command.args.join(' ')}": ${why}`);
  };
  if (!isTransfer(transfer) || transfer === 'SR') return fail('it begins with RR or RW');
  const { iterations, pipeline, mode } = options;
  return {
    test: 'P',
    ...whereOf(options),
    server: { address: options.server, port: options.port },
    command: {
      ...{ iterations, pipeline, transfer, mode: mode === 'p' ? 'polling' : 'blocking' },
      ...parseShape(shape, fail),
    },
  };
}

interface PerformanceOptions {
  readonly iterations: number;
  readonly pipeline: number;
  readonly mode: 'b' | 'p';
}

function quitTask(words: readonly string[]): Task {
  const command = clientOf('Q', 'tell a server to quit').parse(words, { from: 'user' });
  const options = command.opts<Client>();
  const server = { address: options.server, port: options.port };
  return { test: 'Q', ...whereOf(options), server };
}

const LIMIT_NAMES: readonly LimitName[] = [
  ...(Object.keys(LIMITS) as (keyof typeof LIMITS)[]),
  'limit_size_lmr',
];

function limitTask(words: readonly string[]): Task {
  const command = commandOf('L', 'how many objects there may be; needs no server')
    .option('-m, --maximum <number>', 'number of objects to stop at', integer(1, 60_000), 1000)
    .option('-w, --width <number>', 'adapters to use in turn', integer(1, 1000), 1)
    .argument('[tests...]', LIMIT_NAMES.join(', '), limitName, [])
    .parse(words, { from: 'user' });
  const { device, provider, port, maximum, width } = command.opts<Common & LimitNumbers>();
  if (device === undefined) throw new Error('a limit test needs -D, the local address');
  const chosen = command.processedArgs[0] as readonly LimitName[];
  const tests = chosen.length === 0 ? LIMIT_NAMES : chosen;
  return { test: 'L', device, provider, limits: { tests, maximum, width, firstPort: port } };
}

interface LimitNumbers {
  readonly maximum: number;
  readonly width: number;
}

function limitName(word: string, before: readonly LimitName[]): LimitName[] {
  const name = LIMIT_NAMES.find((known) => known === word);
  if (name === undefined) throw new InvalidArgumentError(`one of ${LIMIT_NAMES.join(', ')}`);
  return [...before, name];
}
