/** `dapl info`: the devices of this machine, and those that providers would choose. */
import { Command, InvalidArgumentError, Option } from 'commander';
import { inspectSoftroce } from 'dapl/providers/softroce';
import { inspectVerbs, type VerbsOptions } from 'dapl/providers/verbs';
import { infoDocument } from '../info/document.js';
import { infoText } from '../info/text.js';

interface Given {
  readonly device?: string;
  readonly address?: string;
  readonly port?: number;
  readonly gidIndex?: number;
  readonly json?: boolean;
}

export function infoCommand(): Command {
  return new Command('info')
    .description('list RDMA devices, ports and GIDs, and those that would be chosen')
    .addOption(
      new Option('-d, --device <name>', 'choose this device, or interface').conflicts('address'),
    )
    .option('-a, --address <ip>', 'choose by an address: a local one, or a peer that is routed to')
    .option('-p, --port <number>', 'port of the device', number(1))
    .option('-g, --gid-index <number>', "place in the port's GID table", number(0))
    .option('--json', 'print JSON')
    .addHelpText('after', EXAMPLES)
    .action(async ({ json = false, ...options }: Given) => {
      process.exitCode = await info(options, json);
    });
}

const EXAMPLES = `
Examples:
  dapl info                    all devices, and the one that an application gets by default
  dapl info -a 192.168.1.20    the device and GID that reach this peer, and why
  dapl info --json | jq .verbs.choice

The exit code is 1 if the requested device or address cannot be used.`;

/** @returns the exit code */
async function info(options: VerbsOptions, json: boolean): Promise<number> {
  const [verbs, softroce] = await Promise.all([inspectVerbs(options), inspectSoftroce()]);
  const document = infoDocument(verbs, softroce);
  process.stdout.write(json ? `${JSON.stringify(document, null, 2)}\n` : infoText(document));
  const isAsked = Object.keys(options).length > 0;
  return isAsked && verbs.choice === undefined ? 1 : 0;
}

function number(min: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= min && value <= 255) return value;
    throw new InvalidArgumentError(`It must be a whole number from ${min} to 255.`);
  };
}
