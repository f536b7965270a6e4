/** `dapl forward`: forwards TCP and Unix sockets over rsockets, for unmodified programs. */
import { Command, InvalidArgumentError, Option } from 'commander';
import { Adapters, type ProviderName, PROVIDERS } from '../forward/adapters.js';
import { type Endpoint, endpointOf, endpointText } from '../forward/endpoint.js';
import { Forwarder } from '../forward/forwarder.js';
import { SingleBar } from 'cli-progress';

interface Given {
  readonly listen: Endpoint;
  readonly to: Endpoint;
  readonly from?: string;
  readonly provider: ProviderName;
  readonly buffer: number;
  readonly drain: number;
  readonly counters: number;
}

/** A connection from rsocket to rsocket takes four buffers: less than 1 MB. */
const BUFFER_KIB = 192;
const BUFFER_KIB_LIMITS = { least: 2, most: 1024 * 1024 } as const;
const DRAIN_SECONDS = 30;
/** The longest time that an option takes: a day. */
const MOST_SECONDS = 86_400;

export function forwardCommand(): Command {
  return new Command('forward')
    .summary('carry TCP or Unix sockets over RDMA, and back')
    .description(
      'Listens on one endpoint, opens a connection to the other for each one it accepts, and ' +
        'copies bytes both ways. An endpoint is tcp:HOST:PORT, unix:PATH or rsocket:HOST:PORT ' +
        "(librdmacm's sockets over RDMA). The peer of an rsocket may be another dapl forward, or " +
        'any program that uses rsockets.',
    )
    .requiredOption('--listen <end>', 'endpoint to listen on; port 0: any free port', end(0))
    .requiredOption('--to <end>', 'endpoint to connect to', end(1))
    .option('--from <ip>', 'local address for --to rsocket; default: by the routing table')
    .addOption(
      new Option('-P, --provider <name>', 'provider of rsockets')
        .choices(PROVIDERS)
        .default('softroce'),
    )
    .option('--buffer <KiB>', 'buffer of an rsocket for each direction', kibibytes, BUFFER_KIB)
    .option('--drain <s>', 'time for open connections to end after SIGTERM', seconds, DRAIN_SECONDS)
    .option(
      '--counters <s>',
      'print counters at this period, if stderr is no terminal; 0: at the end',
      seconds,
      0,
    )
    .addHelpText('after', EXAMPLES)
    .action(async (given: Given) => {
      process.exitCode = await forward(given);
    });
}

const EXAMPLES = `
Examples:
  dapl forward --listen tcp:127.0.0.1:8080 --to rsocket:10.0.0.2:8080     on the client's machine
  dapl forward --listen rsocket:10.0.0.2:8080 --to tcp:127.0.0.1:80       on the server's machine
  dapl forward --listen unix:/run/db.sock --to rsocket:10.0.0.2:5432

On SIGTERM or SIGINT it accepts no more connections, and open ones continue until they end. A second
signal, or the end of the --drain time, resets them. The exit code is 1 if connections were reset,
or if it could not listen.`;

function end(leastPort: 0 | 1): (text: string) => Endpoint {
  return (text) => {
    try {
      return endpointOf(text, leastPort);
    } catch (error) {
      throw new InvalidArgumentError((error as Error).message);
    }
  };
}

function seconds(text: string): number {
  const value = Number(text);
  if (/^\d+(?:\.\d+)?$/.test(text) && value <= MOST_SECONDS) return value;
  throw new InvalidArgumentError(`It must be a number of seconds from 0 to ${MOST_SECONDS}.`);
}

function kibibytes(text: string): number {
  const { least, most } = BUFFER_KIB_LIMITS;
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= least && value <= most) return value;
  throw new InvalidArgumentError(`It must be a whole number of KiB from ${least} to ${most}.`);
}

/** @returns the exit code */
async function forward(given: Given): Promise<number> {
  const { listen, to, from, provider, buffer, drain, counters } = given;
  const adapters = new Adapters(provider, from);
  const failed = new AbortController();
  let status: Status | undefined;
  const say = (sentence: string): void => {
    if (status === undefined) process.stderr.write(`${sentence}\n`);
    else status.say(sentence);
  };
  try {
    const forwarder = await Forwarder.start({
      listen,
      to,
      adapters,
      bufferBytes: buffer * 1024,
      onTrouble: (peer, error) => say(`${peer}: ${printable(error.message)}`),
      onError: (error) => failed.abort(error),
    });
    const ends = [await forwarder.endpoint(), to].map(endpointText);
    say(`listening on ${ends[0]!}, forwarding to ${ends[1]!}`);
    status = startStatus(() => forwarder.counters.text, counters * 1000, process.stderr);
    const cut = new AbortController();
    await stopped(failed.signal, cut);
    await forwarder.unlisten();
    say(`accepting no more connections; open ones have ${drain} s to end`);
    const timer = setTimeout(() => cut.abort(), drain * 1000);
    const cutOff = await forwarder.drain(cut.signal);
    clearTimeout(timer);
    status.stop();
    failed.signal.throwIfAborted();
    return cutOff === 0 ? 0 : 1;
  } finally {
    await adapters.close();
  }
}

const SIGNALS = ['SIGTERM', 'SIGINT'] as const;

/**
 * Resolves with the first signal, or when the listener has failed.
 * @param cut is aborted by any later signal
 */
function stopped(failed: AbortSignal, cut: AbortController): Promise<void> {
  return new Promise((resolve) => {
    let isAsked = false;
    const onSignal = (): void => {
      if (isAsked) cut.abort();
      isAsked = true;
      resolve();
    };
    for (const signal of SIGNALS) process.on(signal, onSignal);
    failed.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** Makes text safe for a terminal: it may come from another machine. */
function printable(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '?');
}

const TERMINAL_EVERY_MS = 500;

export interface Status {
  /** Prints a sentence on a line of its own. */
  say(sentence: string): void;
  /** Prints the last line of counters. */
  stop(): void;
}

/**
 * @param text returns the current counters
 * @param everyMs period of lines if `out` is no terminal; 0 to print only the last one
 */
export function startStatus(text: () => string, everyMs: number, out: NodeJS.WriteStream): Status {
  return out.isTTY ? onTerminal(text, out) : inLines(text, everyMs, out);
}

function onTerminal(text: () => string, out: NodeJS.WriteStream): Status {
  const bar = new SingleBar({
    stream: out,
    format: '{text}',
    hideCursor: true,
    // The forwarder handles signals itself.
    gracefulExit: false,
  });
  const show = (): void => bar.update(0, { text: text() });
  bar.start(1, 0, { text: text() });
  const timer = setInterval(show, TERMINAL_EVERY_MS).unref();
  return {
    say: (sentence) => {
      out.write(`\r\x1b[K${sentence}\n`);
      show();
    },
    stop: () => {
      clearInterval(timer);
      show();
      bar.stop();
    },
  };
}

function inLines(text: () => string, everyMs: number, out: NodeJS.WriteStream): Status {
  const say = (sentence: string): void => void out.write(`${sentence}\n`);
  const timer = everyMs > 0 ? setInterval(() => say(text()), everyMs).unref() : undefined;
  return {
    say,
    stop: () => {
      clearInterval(timer);
      say(text());
    },
  };
}
