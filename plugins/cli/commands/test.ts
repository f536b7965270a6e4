/** `dapl test`: runs the conformance suite over a device, and writes a report. */
import { createRequire } from 'node:module';
import { Command } from 'commander';
import type { ReportDocument } from '../report/document.js';

interface Given {
  readonly provider: string;
  readonly device?: string;
  readonly peer?: string;
  readonly only?: string;
  readonly report?: string | true;
}

/** A behaviour that hung may hold handles open. The process exits after this time all the same. */
const GRACE_MS = 2000;

export function testCommand(): Command {
  return new Command('test')
    .summary('run the conformance suite over a device, and report on it')
    .description(
      'Runs the conformance suite over a device of this machine, which connects to itself or to ' +
        'a second one, and measures latency and bandwidth. With --report it writes a file for ' +
        'the authors of this package: capabilities, limits, firmware, kernel, failures and ' +
        'figures, without host name, user, address, GID or GUID.',
    )
    .option(
      '-P, --provider <name>',
      `provider of the device: ${PROVIDERS.join(', ')}, an installed package, or a path (./x.js)`,
      'verbs',
    )
    .option(
      '-d, --device <name>',
      "an RDMA device or interface; softroce, mock: a local address; a package's: its parameters",
    )
    .option('--peer <name>', 'device of the other end; default for verbs: the same device')
    .option('--only <text>', 'run only behaviours whose "Group: behaviour" contains this')
    .option('--report [file]', 'write a report; default dapl-report.json, which must not exist')
    .addHelpText('after', EXAMPLES)
    .action(async (given: Given) => {
      process.exitCode = await test(given);
      setTimeout(() => process.exit(), GRACE_MS).unref();
    });
}

const EXAMPLES = `
Examples:
  dapl test -d mlx5_0 --report              the device, connected with itself
  dapl test -d mlx5_0 --peer mlx5_1         two devices with a cable or a switch between them
  dapl test --only Transferring             a part of the suite
  dapl test -P acme-rdma -d card0 --peer card1
                                            the provider of a package, by its parameters
  dapl test -P softroce                     RoCEv2 in user space, on 127.0.0.1 and 127.0.0.2

The exit code is 1 if a behaviour fails. Let nothing else use the device meanwhile.`;

/** @returns the exit code */
async function test({ report, ...options }: Given): Promise<number> {
  // The suite and the providers are loaded for this command alone.
  const { intoFile, testDevice } = await import('../report/test-device.js');
  const { version } = createRequire(import.meta.url)('dapl/package.json') as { version: string };
  const print = (line: string): void => void process.stdout.write(`${line}\n`);
  const make = (): Promise<ReportDocument> => testDevice({ ...options, version, print });
  const file = report === true ? 'dapl-report.json' : report;
  const document = await (file === undefined ? make() : intoFile(file, make));
  print(summary(document));
  if (file !== undefined) print(`${file}: read it before you send it`);
  return document.conformance.failed.length === 0 ? 0 : 1;
}

function summary({ conformance, figuresProblem }: ReportDocument): string {
  const { passed, failed, notApplicable } = conformance;
  const lacking = Object.entries(notApplicable)
    .map(([capability, count]) => `${capability} (${count})`)
    .join(', ');
  return [
    `${passed} passed, ${failed.length} failed`,
    ...(lacking === '' ? [] : [`left out because the device lacks ${lacking}`]),
    ...(figuresProblem === undefined ? [] : [`no figures: ${figuresProblem}`]),
  ].join('\n');
}

/** Providers that are known by name. Any other name is a package that exports a provider. */
const PROVIDERS = ['verbs', 'softroce', 'mock'] as const;
