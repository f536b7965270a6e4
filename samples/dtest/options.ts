/** The command line: dtest's own letters, so that either program can stand in for the other. */
import { Command, Option } from 'commander';

import { integer, type ProviderName, providerOption } from '../command-options.js';
import { allLengths } from './protocol.js';

/** Settings that must be the same on both sides. */
export interface Steps {
  readonly mode: 'all' | 'writes' | 'write-ping-pong';
  /** Length of a write, of a read and of a message. */
  readonly lengthBytes: number;
  /** Lengths of the ping-pong of writes. */
  readonly lengths: readonly number[];
  readonly burst: number;
  /** One write of this many is signalled. */
  readonly signalRate: number;
  /** True if only the client writes. */
  readonly unidirectional: boolean;
  readonly checkData: boolean;
  readonly poll: boolean;
}

export interface Options extends Steps {
  /** The server's host; undefined to be the server. */
  readonly host: string | undefined;
  /** Our own address; a client's default is by the routing table. */
  readonly source: string | undefined;
  readonly provider: ProviderName;
  /** The provider that the server tells its client to open. */
  readonly announced: string;
}

const BUFFER_BYTES = { default: 4 << 20, max: 16 << 20 } as const;
const BURST = 1000;
const SIGNAL_RATE = { default: 10, max: 1000 } as const;

/** @throws Error, in a sentence; ends the process where commander does (--help, unknown options) */
export function parseOptions(argv: readonly string[]): Options {
  const command = new Command('dtest')
    .description("writes, reads and messages; the other end may be uDAPL's dtest")
    .option('-s, --server', 'run as server (default without -h)', false)
    .option('-h, --host <ip>', 'run as client of the server on this host')
    .option('-I, --source <ip>', 'local address; required for a server')
    .option('-P, --announce <name>', 'server: provider that its client must open', 'ofa-v2-rxe')
    .option('-b, --length <bytes>', 'length of a transfer', integer(1, BUFFER_BYTES.max))
    .option('-B, --burst <number>', 'number of writes', integer(1, 1e6), BURST)
    .option('-S, --signal-rate <number>', 'writes per completion', integer(1, SIGNAL_RATE.max))
    .option('-u, --unidirectional', 'only the client writes', false)
    .option('-w, --write-only', 'only writes, the last with an immediate', false)
    .option('-W, --ping-pong', 'a ping-pong of writes', false)
    .option('-D, --data-check', 'like -W, and check all data', false)
    .option('-a, --all-lengths', 'like -W or -D, with all lengths up to -b', false)
    .option(
      '-i, --increment <bytes>',
      'step between the lengths of -a',
      integer(1, BUFFER_BYTES.max),
    )
    .option('-p, --poll', 'poll for completions', false)
    .addOption(providerOption())
    .helpOption('-U, --help')
    .addOption(new Option('-c, --cno', 'accepted and ignored').hideHelp())
    .parse([...argv]);
  return optionsOf(command.opts<Given>());
}

function optionsOf(given: Given): Options {
  const pingPong = given.pingPong || given.dataCheck;
  const allLengthsAsked = given.allLengths || given.increment !== undefined;
  if (given.server && given.host !== undefined) throw new Error('-s and -h exclude each other');
  if (given.host === undefined && given.source === undefined) {
    throw new Error('a server needs -I, its own address; a client needs -h');
  }
  if (allLengthsAsked && !pingPong) throw new Error('-a and -i go with -W or -D');
  // By default a ping-pong has single bytes.
  const shortest = pingPong && !given.dataCheck && !allLengthsAsked;
  const lengthBytes = given.length ?? (shortest ? 1 : BUFFER_BYTES.default);
  const { burst } = given;
  return {
    host: given.host,
    source: given.source,
    provider: given.provider,
    announced: given.announce,
    mode: pingPong ? 'write-ping-pong' : given.writeOnly ? 'writes' : 'all',
    lengthBytes,
    lengths: allLengthsAsked ? allLengths(lengthBytes, given.increment ?? 0) : [lengthBytes],
    burst,
    signalRate: Math.min(given.signalRate ?? (pingPong ? 1 : SIGNAL_RATE.default), burst),
    unidirectional: given.unidirectional || pingPong,
    checkData: given.dataCheck,
    poll: given.poll,
  };
}

interface Given {
  readonly server: boolean;
  readonly host?: string;
  readonly source?: string;
  readonly provider: ProviderName;
  readonly announce: string;
  readonly length?: number;
  readonly burst: number;
  readonly signalRate?: number;
  readonly unidirectional: boolean;
  readonly writeOnly: boolean;
  readonly pingPong: boolean;
  readonly dataCheck: boolean;
  readonly allLengths: boolean;
  readonly increment?: number;
  readonly poll: boolean;
}
