/** The command line: rping's own letters, so that either program can stand in for the other. */
import { Command, Option } from 'commander';

import { integer } from '../integer-option.js';
import { providerOption, type ProviderName } from '../provider-option.js';
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
    .description('RDMA ping-pong; the other end may be the rping of librdmacm')
    .addOption(new Option('-s, --server', 'be the server').conflicts('client'))
    .option('-c, --client', 'be the client')
    .requiredOption('-a, --address <ip>', 'the address of the server')
    .option('-I, --source <ip>', 'client: the own address')
    .option('-p, --port <number>', 'port', integer(1, 65_535), RPING_PORT)
    .option('-C, --count <number>', 'pings, 0 for ever', integer(0, 2 ** 31 - 1), 0)
    .option('-S, --size <bytes>', 'of a ping', integer(SIZE_BYTES.min, SIZE_BYTES.max), 64)
    .option('-v, --verbose', 'print the data', false)
    .option('-V, --validate', 'client: compare what comes back', false)
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
