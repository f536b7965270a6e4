/** Opens the images given to `dapl iser-target`, serves them, and shuts down in order. */
import { isIP } from 'node:net';
import { hostname } from 'node:os';
import { type Ia, openIa } from 'dapl';
import { softroce } from 'dapl/providers/softroce';
import { verbs } from 'dapl/providers/verbs';
import {
  type BlockBackend,
  type ChapAccount,
  FileBackend,
  ISCSI_PORT,
  IscsiTarget,
  MemoryBackend,
  ReadOnlyBackend,
} from 'dapl/ulp/iser';

export interface TargetSettings {
  readonly lun: readonly string[];
  /** Serial numbers, by LUN, in place of the default ones. */
  readonly serial: readonly string[];
  /** Bytes of a LUN in memory. */
  readonly memory?: number;
  readonly size?: number;
  readonly blockBytes: 512 | 4096;
  readonly readOnly?: true;
  readonly listen: readonly string[];
  readonly tcp: readonly string[];
  readonly provider: 'softroce' | 'verbs';
  /** Default: a name made of those of the host and the first disk. */
  readonly name?: string;
  readonly alias?: string;
  readonly chap?: ChapAccount;
  readonly mutualChap?: ChapAccount;
  readonly immediateData: boolean;
  /** Seconds. */
  readonly drain: number;
  readonly print: (line: string) => void;
}

/**
 * Serves until SIGTERM or SIGINT; a second signal ends sessions immediately.
 * @throws Error with one sentence if an image or portal cannot be used
 */
export async function serve(settings: TargetSettings): Promise<void> {
  const { print, drain } = settings;
  if (settings.lun.length === 0 && settings.memory === undefined) {
    throw new Error('no disk: give --lun FILE, or --memory BYTES');
  }
  if (settings.listen.length + settings.tcp.length === 0) {
    throw new Error('no portal: give --listen ADDRESS for iSER, or --tcp ADDRESS');
  }
  const disks = settings.lun.length + (settings.memory === undefined ? 0 : 1);
  if (settings.serial.length > disks) {
    throw new Error(`--serial is given ${settings.serial.length} times, for ${disks} disks`);
  }
  const backends: BlockBackend[] = [];
  const adapters: Ia[] = [];
  try {
    for (const [lun, path] of settings.lun.entries()) {
      backends.push(await openImage(path, lun, settings));
    }
    if (settings.memory !== undefined) {
      const { memory: sizeBytes, blockBytes, serial } = settings;
      const own = serialOption(serial[settings.lun.length]);
      backends.push(guarded(new MemoryBackend({ sizeBytes, blockBytes, ...own }), settings));
    }
    const target = makeTarget(settings, backends);
    try {
      for (const where of settings.listen) {
        const { address, port } = portalOf('--listen', where);
        const ia = await openAdapter(settings, address);
        adapters.push(ia);
        print(`iSER portal ${target.listenIser(ia, port).name}`);
      }
      for (const where of settings.tcp) {
        const { address, port } = portalOf('--tcp', where);
        print(`iSCSI portal ${(await listenTcp(target, address, port)).name} (TCP)`);
      }
      for (const [lun, each] of backends.entries()) print(describe(lun, each));
      print(`serving ${target.name}`);
      await interrupted();
      print('asking initiators to log out');
      const again = interrupted();
      await Promise.race([target.close(drain), again]);
    } finally {
      await target.close(0);
    }
  } finally {
    await Promise.all(backends.map((backend) => backend.close()));
    await Promise.all(adapters.map((ia) => ia.close('abrupt')));
  }
}

function makeTarget(settings: TargetSettings, backends: readonly BlockBackend[]): IscsiTarget {
  const { name = defaultName(backends), alias, chap, mutualChap, immediateData, print } = settings;
  return new IscsiTarget({
    name,
    ...(alias !== undefined && { alias }),
    ...(chap !== undefined && { chap }),
    ...(mutualChap !== undefined && { mutualChap }),
    immediateData,
    luns: new Map(backends.entries()),
    onNote: print,
  });
}

/**
 * The name made of the host's name and a part of the first disk's serial number, which is unique.
 */
function defaultName([first]: readonly BlockBackend[]): string {
  const plain = (text: string): string => text.toLowerCase().replace(/[^a-z0-9.-]/g, '-');
  const [host, disk] = [hostname().slice(0, 64), first?.serial.slice(0, 8) ?? ''].map(plain);
  return `iqn.2026-01.io.dapl:${host}:${disk}`;
}

function serialOption(serial: string | undefined): { serial?: string } {
  return serial === undefined ? {} : { serial };
}

async function openImage(
  path: string,
  lun: number,
  settings: TargetSettings,
): Promise<BlockBackend> {
  const { blockBytes, size: sizeBytes, readOnly = false, print: onNote } = settings;
  try {
    const size = sizeBytes === undefined ? {} : { sizeBytes };
    const own = serialOption(settings.serial[lun]);
    return await FileBackend.open({ path, blockBytes, readOnly, onNote, ...size, ...own });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code !== 'ENOENT') throw new Error(`${path}: ${message}`, { cause: error });
    throw new Error(`${path} does not exist; --size BYTES creates it`, { cause: error });
  }
}

function guarded(backend: BlockBackend, { readOnly }: TargetSettings): BlockBackend {
  return readOnly === true ? new ReadOnlyBackend(backend) : backend;
}

async function openAdapter({ provider }: TargetSettings, address: string): Promise<Ia> {
  try {
    return await openIa(
      provider === 'verbs' ? verbs({ address }) : softroce({ addresses: [address] }),
    );
  } catch (error) {
    throw new Error(`--listen ${address}: ${(error as Error).message}`, { cause: error });
  }
}

async function listenTcp(
  target: IscsiTarget,
  address: string,
  port: number,
): ReturnType<IscsiTarget['listenTcp']> {
  try {
    return await target.listenTcp(address, port);
  } catch (error) {
    throw new Error(`--tcp ${address}: ${(error as Error).message}`, { cause: error });
  }
}

/** Parses `192.0.2.1`, `192.0.2.1:3260`, `2001:db8::1` or `[2001:db8::1]:3260`. */
function portalOf(option: string, text: string): { address: string; port: number } {
  const [, bracketed, plain, digits] =
    /^(?:\[([^\]]+)\]|([^:]+))(?::([0-9]{1,5}))?$/.exec(text) ?? [];
  const address = isIP(text) === 6 ? text : (bracketed ?? plain ?? '');
  const port = digits === undefined ? ISCSI_PORT : Number(digits);
  if (isIP(address) === 0 || port < 1 || port > 65_535) {
    throw new Error(
      `${option} ${text}: give an IP address, or ADDRESS:PORT with a port from 1 to 65535`,
    );
  }
  return { address, port };
}

function describe(lun: number, backend: BlockBackend): string {
  const { blockCount, blockBytes, isReadOnly, serial } = backend;
  const mebibytes = Number(blockCount * BigInt(blockBytes)) / 2 ** 20;
  const access = isReadOnly ? ', read-only' : '';
  const size = `${mebibytes} MiB in blocks of ${blockBytes}`;
  return `LUN ${lun}: ${size}${access}, serial number ${serial}`;
}

async function interrupted(): Promise<void> {
  const signals = ['SIGTERM', 'SIGINT'] as const;
  await new Promise<void>((resolve) => {
    const onSignal = (): void => {
      for (const signal of signals) process.off(signal, onSignal);
      resolve();
    };
    for (const signal of signals) process.on(signal, onSignal);
  });
}
