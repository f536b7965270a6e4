/** The command line: udaddy's own letters, so that either program can stand in for the other. */
import { Command } from 'commander';

import { integer, type ProviderName, providerOption } from '../command-options.js';
import { SIZE_BYTES, UDADDY_PORT } from './protocol.js';

export interface Options {
  /** IP address of the server; undefined to be the server. */
  readonly server: string | undefined;
  /** Our own IP address; a client's default is by the routing table. */
  readonly bind: string | undefined;
  readonly port: number;
  /** Number of the client's endpoints. */
  readonly connections: number;
  /** Number of messages of each endpoint, and of replies to each. */
  readonly messages: number;
  readonly sizeBytes: number;
  readonly provider: ProviderName;
}

export function parseOptions(argv: readonly string[]): Options {
  const command = new Command('udaddy')
    .description("datagrams; the other end may be librdmacm's udaddy")
    .option('-s, --server <ip>', 'run as client of the server at this address')
    .option('-b, --bind <ip>', 'local address; required for a server')
    .option('-c, --connections <number>', 'endpoints of the client', integer(1, 1000), 1)
    .option('-C, --count <number>', 'messages of each endpoint', integer(1, 10_000), 10)
    .option('-S, --size <bytes>', 'size of a message', messageSize, SIZE_BYTES.default)
    .option('-p, --port <number>', 'port', integer(1, 65_535), UDADDY_PORT)
    .addOption(providerOption())
    .parse([...argv]);
  const { server, bind, port, connections, count, size, provider } = command.opts<Given>();
  if (server === undefined && bind === undefined) {
    command.error('a client needs --server, a server --bind');
  }
  return { server, bind, port, connections, messages: count, sizeBytes: size, provider };
}

interface Given {
  readonly server?: string;
  readonly bind?: string;
  readonly port: number;
  readonly connections: number;
  readonly count: number;
  readonly size: number;
  readonly provider: ProviderName;
}

const messageSize = integer(SIZE_BYTES.min, SIZE_BYTES.max);
