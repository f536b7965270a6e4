/** `dapl iser-initiator`: copies disks of a target over iSER or iSCSI, without the kernel. */
import { Command, InvalidArgumentError, Option } from 'commander';
import type { DiskSettings, InitiatorSettings } from '../storage/use-disk.js';

interface Given {
  readonly transport: 'iser' | 'tcp';
  readonly device?: string;
  readonly local?: string;
  readonly initiatorName?: string;
  readonly chap?: string;
  readonly mutualChap?: string;
}

interface DiskGiven extends Given {
  readonly lun: number;
  readonly lba?: bigint;
  readonly blocks?: bigint;
}

const CHAP_ENVIRONMENT = { chap: 'DAPL_CHAP', mutualChap: 'DAPL_MUTUAL_CHAP' } as const;

export function iserInitiatorCommand(): Command {
  const command = new Command('iser-initiator')
    .summary('list, read, write and verify disks of an iSER or iSCSI target')
    .description(
      'Logs in to a target over iSER (RDMA) or plain iSCSI (TCP), and copies its disks to or ' +
        'from files. If the session is lost, it logs in again and repeats unanswered commands.',
    )
    .addHelpText('after', EXAMPLES);
  common(command.command('list'))
    .description('list the targets of a portal, and their disks')
    .action(async (portal: string, given: Given) => {
      const { list } = await import('../storage/use-disk.js');
      await list(settingsOf(portal, given));
    });
  for (const [name, what] of [
    ['read', 'copy the disk, or a part of it, into a file'],
    ['write', 'copy a file to the disk, and overwrite what is there'],
    ['verify', 'compare a file with the disk; the exit code is 1 if they differ'],
  ] as const) {
    common(command.command(name))
      .description(what)
      .argument('<target>', "the target's iSCSI name")
      .argument('<file>', 'the file to write, or to read')
      .option('-l, --lun <number>', 'disk of the target', number, 0)
      .option('--lba <number>', 'the first block, default 0', big)
      .option('--blocks <number>', 'number of blocks; default all', big)
      .action(async (portal: string, target: string, file: string, given: DiskGiven) => {
        const { lun, lba = 0n, blocks } = given;
        const use = await import('../storage/use-disk.js');
        const settings: DiskSettings = {
          ...settingsOf(portal, given),
          ...{ target, file, lun, lba },
          ...(blocks !== undefined && { blocks }),
        };
        await use[name](settings);
      });
  }
  return command;
}

const EXAMPLES = `
Examples:
  dapl iser-initiator list 192.0.2.1
  dapl iser-initiator read 192.0.2.1 iqn.2026-01.org.example:disk disk.img
  dapl iser-initiator write --transport tcp 192.0.2.1:3261 iqn.2026-01.org.example:disk disk.img
  DAPL_CHAP=someone:averylongsecret dapl iser-initiator verify 192.0.2.1 TARGET disk.img`;

function common(command: Command): Command {
  return command
    .argument('<portal>', 'ADDRESS[:PORT]; an IPv6 address with a port is in brackets')
    .addOption(
      new Option('-t, --transport <name>', 'iSER over RDMA, or iSCSI over TCP')
        .choices(['iser', 'tcp'])
        .default('iser'),
    )
    .option('-d, --device <name>', 'an RDMA device or interface (verbs); default: softroce')
    .option('--local <address>', 'local address of softroce; default: by the routing table')
    .option('--initiator-name <iqn>', 'own iSCSI name; default: derived from the host name')
    .option('--chap <name:secret>', `own CHAP account; or set ${CHAP_ENVIRONMENT.chap}`)
    .option(
      '--mutual-chap <name:secret>',
      `CHAP account of the target; or set ${CHAP_ENVIRONMENT.mutualChap}`,
    );
}

function settingsOf(where: string, given: Given): InitiatorSettings {
  const { transport, device, local, initiatorName } = given;
  const own = account('chap', given.chap);
  const target = account('mutualChap', given.mutualChap);
  if (target !== undefined && own === undefined) {
    throw new Error(
      '--mutual-chap needs --chap: a target only authenticates to an initiator that does',
    );
  }
  const chap = own && { ...own, ...(target && { target }) };
  return {
    portal: {
      ...portalOf(where),
      transport,
      ...(local !== undefined && { localAddress: local }),
      ...(initiatorName !== undefined && { initiatorName }),
      ...(chap && { chap }),
    },
    ...(device !== undefined && { device }),
    print: (line) => void process.stdout.write(`${line}\n`),
  };
}

/** @throws Error unless the text is ADDRESS[:PORT] */
function portalOf(text: string): { address: string; port?: number } {
  const match = /^(?:\[([^\]]+)\]|([^:[\]]+))(?::(\d{1,5}))?$/.exec(text);
  if (match === null && /^[0-9a-fA-F:.]+$/.test(text)) return { address: text };
  if (match === null) throw new Error(`${text} is no portal: use ADDRESS[:PORT]`);
  const [, bracketed, plain = '', port] = match;
  return { address: bracketed ?? plain, ...(port !== undefined && { port: Number(port) }) };
}

/** Other users can see secrets on a command line. The environment is the alternative. */
function account(
  key: keyof typeof CHAP_ENVIRONMENT,
  option: string | undefined,
): { readonly name: string; readonly secret: string } | undefined {
  const text = option ?? process.env[CHAP_ENVIRONMENT[key]];
  if (text === undefined || text === '') return undefined;
  const colon = text.indexOf(':');
  if (colon < 1)
    throw new Error(`${key === 'chap' ? '--chap' : '--mutual-chap'} must be name:secret`);
  return { name: text.slice(0, colon), secret: text.slice(colon + 1) };
}

function number(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('a number from 0 on');
}

function big(text: string): bigint {
  if (/^\d{1,20}$/.test(text)) return BigInt(text);
  throw new InvalidArgumentError('a number from 0 on');
}
