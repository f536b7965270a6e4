/** The command line: mckey's own letters, so that either program can stand in for the other. */
import { Command } from 'commander';

import { integer, type ProviderName, providerOption } from '../command-options.js';

export interface Options {
  /** IP address of the group. */
  readonly group: string;
  /** True to send to the group and receive nothing. */
  readonly isSender: boolean;
  /** True if the sender does not join: the group also accepts datagrams from outside. */
  readonly sendOnly: boolean;
  /** Our own IP address, whose interface joins; default: by the routing table. */
  readonly bind: string | undefined;
  /** Number of endpoints, each of which joins. */
  readonly connections: number;
  /** Datagrams that each endpoint sends, or waits for. */
  readonly messages: number;
  readonly sizeBytes: number;
  readonly provider: ProviderName;
}

export function parseOptions(argv: readonly string[]): Options {
  const options = new Command('mckey')
    .description("datagrams to a group; the other ends may be librdmacm's mckey")
    .requiredOption('-m, --group <ip>', 'the multicast group')
    .option('-s, --sender', 'send to the group; default: receive', false)
    .option('-o, --send-only', 'send without joining', false)
    .option('-b, --bind <ip>', 'local address, whose interface joins')
    .option('-c, --connections <number>', 'endpoints that join', integer(1, 100), 1)
    .option('-C, --count <number>', 'datagrams of each endpoint', integer(1, 10_000), 10)
    .option('-S, --size <bytes>', 'size of a datagram', integer(1, 4096), 100)
    .addOption(providerOption())
    .parse([...argv])
    .opts<Given>();
  const { group, sender, sendOnly, bind, connections, count, size, provider } = options;
  return {
    group,
    isSender: sender,
    sendOnly,
    bind,
    connections,
    messages: count,
    sizeBytes: size,
    provider,
  };
}

interface Given {
  readonly group: string;
  readonly sender: boolean;
  readonly sendOnly: boolean;
  readonly bind?: string;
  readonly connections: number;
  readonly count: number;
  readonly size: number;
  readonly provider: ProviderName;
}
