/**
 * The port's GIDs as the SPI counts them: the default source first, then the others that can be
 * used, in the order of the port's table.
 */
import { checkInteger } from '../../../core/spi/checks/index.js';
import { einval } from '../../../core/spi/errors/einval.js';
import { type Gid, SpiError, isIpv4Gid } from '../../../core/spi/index.js';
import { errnoError } from '../system/errno.js';
import { isLinkLocal } from '../system/link-local.js';
import type { NativePortAttributes, VerbsAddon } from '../addon/native-addon.js';

const ROCE_V1 = 1;
const ETHERNET = 2;
const GID_BYTES = 16;

interface Entry {
  readonly index: number;
  readonly gid: Gid;
}

export class GidTable {
  private entries: readonly Entry[] = [];

  /** @throws SpiError('EINVAL') when there is no GID at `defaultIndex` */
  constructor(
    private readonly addon: VerbsAddon,
    private readonly device: number,
    private readonly portNumber: number,
    private readonly port: NativePortAttributes,
    private readonly defaultIndex: number | undefined,
  ) {
    this.read();
    if (defaultIndex === undefined || this.entries[0]?.index === defaultIndex) return;
    throw new SpiError('EINVAL', `port ${portNumber} has no usable GID at index ${defaultIndex}`);
  }

  get gids(): readonly Gid[] {
    return this.entries.map(({ gid }) => gid);
  }

  hardwareIndex(localIndex: number): number {
    checkInteger('localGidIndex', localIndex, 0, this.entries.length - 1, einval);
    return this.entries[localIndex]!.index;
  }

  localIndex(hardwareIndex: number): number {
    return Math.max(
      0,
      this.entries.findIndex(({ index }) => index === hardwareIndex),
    );
  }

  /** Again after GID_CHANGE. */
  read(): void {
    const found: Entry[] = [];
    for (let index = 0; index < this.port.gidTableLength; index++) {
      const gid = new Uint8Array(GID_BYTES);
      const type = this.addon.queryGid(this.device, this.portNumber, index, gid);
      if (type < 0) {
        if (isAbsent(-type)) continue;
        throw errnoError('ibv_query_gid', -type, `index ${index}`);
      }
      if (type === ROCE_V1 || gid.every((byte) => byte === 0)) continue;
      found.push({ index, gid });
    }
    const first = this.defaultOf(found);
    this.entries = first ? [first, ...found.filter((entry) => entry !== first)] : found;
  }

  /** On Ethernet an address that a person gave comes before the interface's own. */
  private defaultOf(entries: readonly Entry[]): Entry | undefined {
    if (this.defaultIndex !== undefined) {
      return entries.find(({ index }) => index === this.defaultIndex);
    }
    if (this.port.linkLayer !== ETHERNET) return entries[0];
    return (
      entries.find(({ gid }) => isIpv4Gid(gid)) ??
      entries.find(({ gid }) => !isLinkLocal(gid)) ??
      entries[0]
    );
  }
}

/** Errors of kernels for an empty entry: ENODATA, and older ones EINVAL, EAGAIN or ENOENT. */
function isAbsent(errno: number): boolean {
  return [2, 11, 22, 61].includes(errno);
}
