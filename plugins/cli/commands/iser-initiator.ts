/** `dapl iser-initiator`: disks of a target over iSER or iSCSI, without a kernel's initiator. */
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
      'Logs in to a target as a machine would, over iSER (RDMA) or plain iSCSI (TCP), and reads ' +
        'or writes its disks from and to files. A lost session is made again, and what was not ' +
        'answered is sent again.',
    )
    .addHelpText('after', EXAMPLES);
  common(command.command('list'))
    .description('what targets a portal has, and their disks')
    .action(async (portal: string, given: Given) => {
      const { list } = await import('../storage/use-disk.js');
      await list(settingsOf(portal, given));
    });
  for (const [name, what] of [
    ['read', 'the disk, or a part of it, into a file'],
    ['write', 'a file into the disk; what is there is overwritten'],
    ['verify', 'compare a file with the disk; ends with 1 where they differ'],
  ] as const) {
    common(command.command(name))
      .description(what)
      .argument('<target>', "the target's iSCSI name")
      .argument('<file>', 'where the blocks go, or come from')
      .option('-l, --lun <number>', 'which disk of the target', number, 0)
      .option('--lba <number>', 'the first block, default 0', big)
      .option('--blocks <number>', 'how many; default all', big)
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
    .addOption(new Option('-t, --transport <name>', 'how').choices(['iser', 'tcp']).default('iser'))
    .option('-d, --device <name>', 'an RDMA device or interface (verbs); default softroce')
    .option('--local <address>', 'the own address of softroce; default the one that leads there')
    .option('--initiator-name <iqn>', 'who is logging in; default follows from the host name')
    .option('--chap <name:secret>', `what is proved; or ${CHAP_ENVIRONMENT.chap}`)
    .option(
      '--mutual-chap <name:secret>',
      `what the target must prove; or ${CHAP_ENVIRONMENT.mutualChap}`,
    );
}

function settingsOf(where: string, given: Given): InitiatorSettings {
  const { transport, device, local, initiatorName } = given;
  const own = account('chap', given.chap);
  const target = account('mutualChap', given.mutualChap);
  if (target !== undefined && own === undefined) {
    throw new Error('--mutual-chap needs --chap: a target proves itself to one that does, too');
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

/** @throws Error for what is no ADDRESS[:PORT] */
function portalOf(text: string): { address: string; port?: number } {
  const match = /^(?:\[([^\]]+)\]|([^:[\]]+))(?::(\d{1,5}))?$/.exec(text);
  if (match === null && /^[0-9a-fA-F:.]+$/.test(text)) return { address: text };
  if (match === null) throw new Error(`${text} is no portal: ADDRESS[:PORT]`);
  const [, bracketed, plain = '', port] = match;
  return { address: bracketed ?? plain, ...(port !== undefined && { port: Number(port) }) };
}

/** Secrets on the command line are seen by others of the machine; so there is the environment. */
function account(
  key: keyof typeof CHAP_ENVIRONMENT,
  option: string | undefined,
): { readonly name: string; readonly secret: string } | undefined {
  const text = option ?? process.env[CHAP_ENVIRONMENT[key]];
  if (text === undefined || text === '') return undefined;
  const colon = text.indexOf(':');
  if (colon < 1) throw new Error(`${key === 'chap' ? '--chap' : '--mutual-chap'}: name:secret`);
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
