/**
 * XRC domains over ibv_open_xrcd. The kernel knows a domain that processes share by the inode of a
 * file, so each key has one, in a directory of the user's; what is in it means nothing.
 */
import { show } from '../../../core/spi/checks/index.js';
import { createHash } from 'node:crypto';
import { closeSync, constants, lstatSync, mkdirSync, openSync } from 'node:fs';
import { constants as system } from 'node:os';
import { join } from 'node:path';
import {
  type QueuePair,
  type QueuePairEventHandler,
  SpiError,
  type XrcDomainHandle,
  type XrcOpenMode,
  type XrcSharing,
} from '../../../core/spi/index.js';
import type { OpenDevice } from './open-device.js';
import { errnoError, made } from '../system/errno.js';
import { VerbsObject } from './verbs-object.js';

const { O_CREAT, O_EXCL, O_RDWR, O_NOFOLLOW } = constants;
const FLAGS: Readonly<Record<XrcOpenMode, number>> = {
  create: O_CREAT,
  exclusive: O_CREAT | O_EXCL,
  existing: 0,
};
const PRIVATE = -1;
const OTHERS_MAY_WRITE = 0o022;
const { EACCES, EAGAIN, EINVAL } = system.errno;

export class VerbsXrcDomain extends VerbsObject implements XrcDomainHandle {
  /**
   * @param targetOf makes a queue pair of a target that is there already
   * @throws SpiError('EINVAL', 'ENODEV') as `Device.createXrcDomain`; ('EACCES')
   */
  constructor(
    device: OpenDevice,
    sharing: XrcSharing | undefined,
    private readonly targetOf: (qpn: number, onEvent: QueuePairEventHandler) => QueuePair,
  ) {
    super(device, 'XRC domain');
    this.created(sharing ? openShared(device, sharing) : openPrivate(device));
  }

  openTarget(qpn: number, onEvent: QueuePairEventHandler): QueuePair {
    return this.targetOf(qpn, onEvent);
  }

  protected release(number: number): [string, number] {
    return ['ibv_close_xrcd', this.device.addon.closeXrcd(number)];
  }
}

function openPrivate({ addon, number, name }: OpenDevice): number {
  return made('ibv_open_xrcd', addon.openXrcd(number, PRIVATE, O_CREAT), name);
}

/** The domain holds the inode: the file may be closed. */
function openShared({ addon, number, name }: OpenDevice, { key, mode }: XrcSharing): number {
  const path = fileOf(name, key);
  const file = openSync(path, O_CREAT | O_RDWR | O_NOFOLLOW, 0o600);
  try {
    const opened = addon.openXrcd(number, file, FLAGS[mode]);
    if (opened === -EAGAIN && mode === 'existing') {
      throw new SpiError('ENODEV', `there is no XRC domain ${show(key)} on ${name}`);
    }
    if (opened === -EINVAL && mode === 'exclusive') {
      throw new SpiError('EINVAL', `XRC domain ${show(key)} exists already on ${name}`);
    }
    return made('ibv_open_xrcd', opened, `${name}, key ${show(key)}, ${path}`);
  } finally {
    closeSync(file);
  }
}

/** @throws SpiError('EACCES') when another user has taken the directory's name */
function fileOf(deviceName: string, key: string): string {
  const user = process.getuid?.() ?? 0;
  const directory = `/dev/shm/dapl-xrc-${user}`;
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const { uid, mode } = lstatSync(directory);
  if (uid !== user || (mode & OTHERS_MAY_WRITE) !== 0) {
    throw errnoError('ibv_open_xrcd', EACCES, `${directory} is not ours alone`);
  }
  const digest = createHash('sha256').update(`${deviceName}\0${key}`).digest('hex');
  return join(directory, digest.slice(0, 32));
}
