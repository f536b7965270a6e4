/** Runs each point of the review of August 2005 on a simulated fabric, or over softroce. */
import { Command, Option } from 'commander';
import { type LogMethods, openIa } from 'dapl';
import { Fabric, mock } from 'dapl/providers/mock';
import { softroce } from 'dapl/providers/softroce';
import type { ConfiguredPlugin } from 'dapl/spi';
import { runProgram } from '../program.js';
import { POINTS } from './cases.js';
import { Traffic } from './traffic.js';

type Provider = 'mock' | 'softroce';
interface Options {
  readonly provider: Provider;
  readonly addresses: readonly [string, string];
}

const FIRST_CONN_QUAL = 7100;

const program = new Command('policies')
  .description('upcall policies of event dispatchers: the work they took, and the stream for it')
  .addOption(
    new Option('--provider <name>', 'mock is a simulated fabric')
      .choices(['mock', 'softroce'])
      .default('mock'),
  )
  .option('--addresses <ip...>', 'addresses of the two ends', ['127.0.0.1', '127.0.0.2']);
const { provider, addresses } = program.parse().opts<Options>();

await runProgram('policies', async () => {
  const fabric = new Fabric({ seed: 1, autoRun: true });
  const at = (address: string): ConfiguredPlugin<'provider'> =>
    provider === 'mock' ? mock({ fabric, address }) : softroce({ addresses: [address] });
  const trace: string[] = [];
  const quiet = (): void => undefined;
  const logger: LogMethods = {
    debug: (line: string) => void trace.push(line),
    info: quiet,
    warn: quiet,
    error: quiet,
    isDebugEnabled: () => true,
  };
  const sender = await openIa(at(addresses[0]));
  try {
    const receiver = await openIa(at(addresses[1]), { logger });
    try {
      for (const [i, { questions, title, then, now }] of POINTS.entries()) {
        const traffic = await Traffic.open({ sender, receiver, trace }, FIRST_CONN_QUAL + i);
        console.log(`${questions.join(', ')} ${title}`);
        console.log(`  then: ${then}`);
        console.log(`  now:  ${await now(traffic)}`);
        await traffic.close();
      }
    } finally {
      await receiver.close('abrupt');
    }
  } finally {
    await sender.close('abrupt');
  }
});
