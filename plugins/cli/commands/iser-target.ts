/** `dapl iser-target`: serves disk images to machines that speak iSER or iSCSI. */
import { Command, Option } from 'commander';

interface Given {
  readonly lun: readonly string[];
  readonly listen: readonly string[];
  readonly tcp: readonly string[];
  readonly name?: string;
  readonly serial: readonly string[];
  readonly alias?: string;
  readonly size?: number;
  readonly blockBytes: '512' | '4096';
  readonly readOnly?: true;
  readonly memory?: number;
  readonly chap?: string;
  readonly mutualChap?: string;
  readonly immediateData: boolean;
  readonly provider: 'softroce' | 'verbs';
  readonly drain: number;
}

const CHAP_ENVIRONMENT = { chap: 'DAPL_CHAP', mutualChap: 'DAPL_MUTUAL_CHAP' } as const;

export function iserTargetCommand(): Command {
  const several = (value: string, before: readonly string[]): readonly string[] => [
    ...before,
    value,
  ];
  const none: readonly string[] = [];
  return new Command('iser-target')
    .summary('serve disk images over iSER and iSCSI')
    .description(
      'Serves files as disks: to Linux (open-iscsi) or any other initiator, over iSER (RDMA) and ' +
        'over plain iSCSI (TCP). The first --lun is LUN 0. SIGTERM asks initiators to log out, ' +
        'waits, and leaves when what was written is on the disk.',
    )
    .option('-l, --lun <file>', 'a disk image; again for further LUNs', several, none)
    .option('--memory <bytes>', 'a further LUN that is kept in memory: 64M', bytesOf)
    .option('--size <bytes>', 'makes a --lun that is not there, sparse: 512M, 10G', bytesOf)
    .addOption(
      new Option('--block-bytes <bytes>', 'of a logical block')
        .choices(['512', '4096'])
        .default('512'),
    )
    .option('--read-only', 'refuse writes')
    .option('--listen <address[:port]>', 'an iSER portal; again for more', several, none)
    .option('--tcp <address[:port]>', 'an iSCSI portal over TCP; again for more', several, none)
    .addOption(
      new Option('-P, --provider <name>', 'what iSER portals stand on')
        .choices(['softroce', 'verbs'])
        .default('softroce'),
    )
    .option(
      '--name <iqn>',
      "what initiators ask for; default: of the host's name and the first disk",
    )
    .option('--serial <text>', 'of a LUN, in their order, instead of its own', several, none)
    .option('--alias <text>', 'the same for people')
    .option('--chap <name:secret>', `initiators must prove this; or ${CHAP_ENVIRONMENT.chap}`)
    .option(
      '--mutual-chap <name:secret>',
      `what the target proves when asked; or ${CHAP_ENVIRONMENT.mutualChap}`,
    )
    .option('--no-immediate-data', 'fetch the data of every write')
    .option('--drain <seconds>', 'how long initiators may take to log out', secondsOf, 10)
    .addHelpText('after', EXAMPLES)
    .action(async (given: Given) => {
      const { serve } = await import('../storage/serve-target.js');
      const { chap, mutualChap, ...rest } = given;
      await serve({
        ...rest,
        ...accountOption('chap', chap),
        ...accountOption('mutualChap', mutualChap),
        blockBytes: given.blockBytes === '512' ? 512 : 4096,
        print: (line) => void process.stdout.write(`${line}\n`),
      });
    });
}

const EXAMPLES = `
Examples:
  dapl iser-target --lun disk.img --size 1G --listen 192.0.2.1
  dapl iser-target --lun disk.img --listen 192.0.2.1 --listen [2001:db8::1]:3261 --tcp 192.0.2.1
  DAPL_CHAP=someone:averylongsecret dapl iser-target --lun disk.img --tcp 192.0.2.1

On the other machine, with open-iscsi:
  iscsiadm -m discovery -t sendtargets -p 192.0.2.1 -I iser
  iscsiadm -m node -p 192.0.2.1 -I iser --login`;

interface Account {
  readonly name: string;
  readonly secret: string;
}

/** Secrets on the command line are seen by others of the machine; so there is the environment. */
function accountOption(
  key: keyof typeof CHAP_ENVIRONMENT,
  option: string | undefined,
): Partial<Record<keyof typeof CHAP_ENVIRONMENT, Account>> {
  const text = option ?? process.env[CHAP_ENVIRONMENT[key]];
  if (text === undefined || text === '') return {};
  const colon = text.indexOf(':');
  if (colon < 1) throw new Error(`${key === 'chap' ? '--chap' : '--mutual-chap'}: name:secret`);
  return { [key]: { name: text.slice(0, colon), secret: text.slice(colon + 1) } };
}

const UNITS: Readonly<Record<string, number>> = {
  '': 1,
  K: 2 ** 10,
  M: 2 ** 20,
  G: 2 ** 30,
  T: 2 ** 40,
};

/** @throws Error for what is no size */
function bytesOf(text: string): number {
  const [, digits = '', unit = ''] = /^([0-9]+)([KMGT]?)$/i.exec(text) ?? [];
  const bytes = Number(digits) * (UNITS[unit.toUpperCase()] ?? 0);
  if (bytes > 0 && Number.isSafeInteger(bytes)) return bytes;
  throw new Error(`${text} is no size: a number of bytes, or one with K, M, G or T behind it`);
}

function secondsOf(text: string): number {
  const seconds = /^[0-9]{1,5}$/.test(text) ? Number(text) : NaN;
  if (seconds <= 3600) return seconds;
  throw new Error(`--drain is ${text}, must be 0 to 3600 seconds`);
}
