/**
 * Opens a domain that processes share: finds its host process, or starts it. The event loop keeps
 * running: the host may wait for this process, as the broker of the address.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { type BigIntStats, statSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { show } from '../../../core/spi/checks/index.js';
import { SpiError, type XrcSharing } from '../../../core/spi/index.js';
import type { Hca } from '../../hca/hca.js';
import type { UnixSocket, UnixSockets } from '../../host/index.js';
import { HostedDomain } from './hosted-domain.js';
import type { SharedNames } from './mirror.js';

/** Node starts, joins the group of the address and opens a device. */
const START_MS = 20_000;
const SLEEP_MS = 2;
const DIGITS = 16;

/** The native addon's calls for opening a domain. */
export type XrcHostAddon = Pick<UnixSockets, 'connectUnix'> & {
  memoryDescriptor(name: string): number;
  createSharedTable(name: string, lengthBytes: number): Table;
  closeDescriptor(descriptor: number): void;
};
type Table = { readonly memory: ArrayBuffer; readonly descriptor: number };

export interface XrcHostInit {
  readonly addon: XrcHostAddon;
  /** The name of the group of processes that share the device. */
  readonly groupName: string;
  /** Lets the group's broker, which may be in this thread, answer the host that starts. */
  readonly turn: () => void;
  readonly names: SharedNames;
  /** The file that a host process runs; undefined where there is no such file. */
  readonly program: string | undefined;
  /** Options of the device that the host is to open, but for `shared`. */
  readonly options: object;
}

/**
 * @returns undefined for a key that names no file: such a domain is in-process. Rejects with
 * SpiError('EINVAL') the key names no file that is there, or 'exclusive' and the domain exists;
 * ('ENODEV') 'existing' and it does not; ('EACCES') another user's; ('EOPNOTSUPP') in a bundle
 * without the package; ('EIO') the host cannot start; ('ETIMEDOUT')
 */
export async function openHostedDomain(
  init: XrcHostInit,
  hca: Hca,
  sharing: XrcSharing,
): Promise<HostedDomain | undefined> {
  const { key, mode } = sharing;
  if (!isAbsolute(key)) return undefined;
  const name = `${init.groupName}/xrc/${fileDigest(key)}`;
  const endMs = performance.now() + START_MS;
  let host: ChildProcess | undefined;
  while (performance.now() < endMs) {
    const socket = connectTo(init.addon, name, key);
    if (socket !== undefined) {
      const domain = await openAt(init, hca, sharing, socket);
      if (domain !== undefined) return domain;
    } else if (mode === 'existing') {
      throw new SpiError('ENODEV', `there is no XRC domain ${show(key)}`);
    } else if (host === undefined || hasEnded(host, key)) {
      host = startHost(init, name, key);
    }
    await sleep(SLEEP_MS);
  }
  throw new SpiError('ETIMEDOUT', `the host of XRC domain ${show(key)} has not started`);
}

/** @returns undefined where the host has just ended: its last opener has gone */
async function openAt(
  { addon, names, turn }: XrcHostInit,
  hca: Hca,
  { key, mode }: XrcSharing,
  socket: UnixSocket,
): Promise<HostedDomain | undefined> {
  const domain = new HostedDomain({
    hca,
    names,
    link: { socket, turn },
    createTable: (bytes) => addon.createSharedTable('dapl-xrc', bytes),
    closeDescriptor: (descriptor) => addon.closeDescriptor(descriptor),
    memoryDescriptor: (memory) => addon.memoryDescriptor(memory),
  });
  try {
    await domain.open(mode);
    return domain;
  } catch (error) {
    const { code, message } = error as SpiError;
    if (code === 'EIO') return undefined;
    throw new SpiError(code, `XRC domain ${show(key)}: ${message}`, { cause: error });
  }
}

/**
 * A host that finds the name taken ends, and says nothing; one that was killed is started again.
 * @throws SpiError('EIO') it cannot do what a host does
 */
function hasEnded({ exitCode, signalCode }: ChildProcess, key: string): boolean {
  if (exitCode === null || exitCode === 0) return exitCode === 0 || signalCode !== null;
  throw new SpiError('EIO', `the host of XRC domain ${show(key)} ended with code ${exitCode}`, {
    hint: 'another try starts another one; see that this address can be opened by one program more',
  });
}

/** One domain for all names of a file, as ibv_open_xrcd has it. */
function fileDigest(key: string): string {
  let stats: BigIntStats;
  try {
    stats = statSync(key, { bigint: true });
  } catch (cause) {
    throw new SpiError('EINVAL', `XRC domain ${show(key)}: there is no such file`, {
      cause,
      hint: 'a key that is an absolute path names a file, which must be there',
    });
  }
  return createHash('sha256').update(`${stats.dev}:${stats.ino}`).digest('hex').slice(0, DIGITS);
}

function connectTo(addon: XrcHostAddon, name: string, key: string): UnixSocket | undefined {
  let socket: UnixSocket;
  try {
    socket = addon.connectUnix(name);
  } catch (error) {
    const { code } = error as { code?: string };
    if (code === 'ECONNREFUSED' || code === 'EAGAIN') return undefined;
    throw error;
  }
  const { isOwnUser, uid } = socket.identity();
  if (isOwnUser) return socket;
  socket.close();
  throw new SpiError('EACCES', `XRC domain ${show(key)} is user ${uid}'s`);
}

/** Starts a host, which outlives this process and inherits nothing from it. */
function startHost({ program, options }: XrcHostInit, name: string, key: string): ChildProcess {
  if (program === undefined) {
    throw new SpiError(
      'EOPNOTSUPP',
      `XRC domain ${show(key)} needs a host process, whose program is not part of a bundle`,
      { hint: 'install the package dapl where a program in the folder of the bundle finds it' },
    );
  }
  const child = spawn(process.execPath, [program, JSON.stringify({ name, options })], {
    detached: true,
    stdio: 'ignore',
    cwd: '/',
  });
  // It has been seen to: without a host, opening fails.
  child.on('error', () => undefined);
  if (child.pid === undefined) throw new SpiError('EIO', `${process.execPath} does not start`);
  child.unref();
  return child;
}
