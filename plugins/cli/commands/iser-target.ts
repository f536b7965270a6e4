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
        'over plain iSCSI (TCP). The first --lun is LUN 0. On SIGTERM it asks initiators to log ' +
        'out, waits, and exits when all writes are on the disk.',
    )
    .option('-l, --lun <file>', 'a disk image; repeat for more LUNs', several, none)
    .option('--memory <bytes>', 'one more LUN, kept in memory: 64M', bytesOf)
    .option(
      '--size <bytes>',
      'create a missing --lun file of this size, sparse: 512M, 10G',
      bytesOf,
    )
    .addOption(
      new Option('--block-bytes <bytes>', 'size of a logical block')
        .choices(['512', '4096'])
        .default('512'),
    )
    .option('--read-only', 'refuse writes')
    .option('--listen <address[:port]>', 'an iSER portal; repeat for more', several, none)
    .option('--tcp <address[:port]>', 'an iSCSI portal over TCP; repeat for more', several, none)
    .addOption(
      new Option('-P, --provider <name>', 'provider of iSER portals')
        .choices(['softroce', 'verbs'])
        .default('softroce'),
    )
    .option(
      '--name <iqn>',
      'iSCSI name of the target; default: derived from the host name and the first disk',
    )
    .option('--serial <text>', 'serial number of a LUN; repeat in the order of LUNs', several, none)
    .option('--alias <text>', 'readable name of the target')
    .option('--chap <name:secret>', `CHAP account of initiators; or set ${CHAP_ENVIRONMENT.chap}`)
    .option(
      '--mutual-chap <name:secret>',
      `own CHAP account; or set ${CHAP_ENVIRONMENT.mutualChap}`,
    )
    .option('--no-immediate-data', 'accept no data with commands: fetch the data of every write')
    .option('--drain <seconds>', 'time for initiators to log out', secondsOf, 10)
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

/** Other users can see secrets on a command line. The environment is the alternative. */
function accountOption(
  key: keyof typeof CHAP_ENVIRONMENT,
  option: string | undefined,
): Partial<Record<keyof typeof CHAP_ENVIRONMENT, Account>> {
  const text = option ?? process.env[CHAP_ENVIRONMENT[key]];
  if (text === undefined || text === '') return {};
  const colon = text.indexOf(':');
  if (colon < 1)
    throw new Error(`${key === 'chap' ? '--chap' : '--mutual-chap'} must be name:secret`);
  return { [key]: { name: text.slice(0, colon), secret: text.slice(colon + 1) } };
}

const UNITS: Readonly<Record<string, number>> = {
  '': 1,
  K: 2 ** 10,
  M: 2 ** 20,
  G: 2 ** 30,
  T: 2 ** 40,
};

/** @throws Error unless the text is a size */
function bytesOf(text: string): number {
  const [, digits = '', unit = ''] = /^([0-9]+)([KMGT]?)$/i.exec(text) ?? [];
  const bytes = Number(digits) * (UNITS[unit.toUpperCase()] ?? 0);
  if (bytes > 0 && Number.isSafeInteger(bytes)) return bytes;
  throw new Error(`${text} is no size: use a number of bytes, or one followed by K, M, G or T`);
}

function secondsOf(text: string): number {
  const seconds = /^[0-9]{1,5}$/.test(text) ? Number(text) : NaN;
  if (seconds <= 3600) return seconds;
  throw new Error(`--drain is ${text}, must be 0 to 3600 seconds`);
}
