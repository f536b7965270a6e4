/** The command line: rping's own letters, so that either program can stand in for the other. */
import { Command, Option } from 'commander';

import { integer, type ProviderName, providerOption } from '../command-options.js';
import { RPING_PORT, SIZE_BYTES } from './protocol.js';

export interface Options {
  readonly role: 'server' | 'client';
  /** IP address: our own as a server, the server's as a client. */
  readonly address: string;
  /** Our own address as a client; default: by the routing table. */
  readonly source: string | undefined;
  readonly port: number;
  /** Number of pings; 0: endless. */
  readonly count: number;
  readonly sizeBytes: number;
  readonly verbose: boolean;
  readonly validate: boolean;
  /** Default softroce. */
  readonly provider?: ProviderName;
}

export function parseOptions(argv: readonly string[]): Options {
  const command = new Command('rping')
    .description("RDMA ping-pong; the other end may be librdmacm's rping")
    .addOption(new Option('-s, --server', 'run as server').conflicts('client'))
    .option('-c, --client', 'run as client')
    .requiredOption('-a, --address <ip>', 'address of the server')
    .option('-I, --source <ip>', 'client: local address')
    .option('-p, --port <number>', 'port', integer(1, 65_535), RPING_PORT)
    .option('-C, --count <number>', 'number of pings; 0: endless', integer(0, 2 ** 31 - 1), 0)
    .option('-S, --size <bytes>', 'size of a ping', integer(SIZE_BYTES.min, SIZE_BYTES.max), 64)
    .option('-v, --verbose', 'print the data', false)
    .option('-V, --validate', 'client: compare the data that comes back', false)
    .addOption(providerOption())
    .parse([...argv]);
  const given = command.opts<Given>();
  if (given.server !== true && given.client !== true) {
    command.error('either --server or --client is needed');
  }
  return {
    role: given.server === true ? 'server' : 'client',
    address: given.address,
    source: given.source,
    port: given.port,
    count: given.count,
    sizeBytes: given.size,
    verbose: given.verbose,
    validate: given.validate,
    provider: given.provider,
  };
}

interface Given {
  readonly server?: boolean;
  readonly client?: boolean;
  readonly address: string;
  readonly source?: string;
  readonly port: number;
  readonly count: number;
  readonly size: number;
  readonly verbose: boolean;
  readonly validate: boolean;
  readonly provider: ProviderName;
}
