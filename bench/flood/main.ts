/**
 * What a flood of CM messages from one address costs a server, and what another client notices.
 *
 *   npm run bench:flood -- [--rate N] [--seconds S] [--network A.B.C]
 */
import { Command } from 'commander';
import { positive } from '../compare/arguments.js';
import { ROCE_UDP_PORT } from 'dapl/providers/softroce';
import { FLOOD_KINDS, type FloodKind } from './datagrams.js';
import { runFlood, type Sample } from './run.js';

function row(what: string, sample: Sample, seconds: number): string {
  const cells = [
    what,
    `${(100 * sample.cpuShare).toFixed(0)} %`,
    String(sample.receivedPackets),
    String(sample.sent - sample.pings - sample.repeats),
    String(sample.droppedDatagrams),
    String(Math.round(sample.pings / seconds)),
    sample.slowestPingMs.toFixed(1),
    String(sample.retries),
    `${sample.connects} of ${sample.connects + sample.failedConnects}`,
    sample.slowestConnectMs.toFixed(1),
    sample.isConnected ? 'yes' : 'NO',
  ];
  return `| ${cells.join(' | ')} |\n`;
}

const HEAD =
  '| flood | CPU of the server | packets in | CM messages out | lost at the socket ' +
  '| messages/s | slowest, ms | retries | connects | slowest, ms | connected |\n|' +
  ' --- |'.repeat(11) +
  '\n';

const program = new Command('bench:flood')
  .option('--rate <n>', 'messages a second', positive, 5000)
  .option('--seconds <s>', 'of each flood', positive, 10)
  .option('--network <a.b.c>', 'first three numbers of the addresses', '127.0.8');
program.parse();
const { rate, seconds, network } = program.opts<{
  rate: number;
  seconds: number;
  network: string;
}>();
process.stdout.write(HEAD);
for (const kind of Object.keys(FLOOD_KINDS) as FloodKind[]) {
  const options = { kind, perSecond: rate, seconds, network, udpPort: ROCE_UDP_PORT };
  const { quiet, flooded } = await runFlood(options);
  process.stdout.write(row('none', quiet, 1) + row(FLOOD_KINDS[kind], flooded, seconds));
}
