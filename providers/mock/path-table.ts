/** Counted destinations of a port: the same arguments give the same number. */
import type { Gid } from '../../core/spi/index.js';
import { ipFromGid, isIpv4Gid } from '../../core/spi/index.js';
import { Flow } from './wire-packet.js';

/** The port of RoCEv2 (IBTA A17.3.1), and the one that packets of ours come from. */
const ROCE_UDP_PORT = 4791;
const SOURCE_PORT = 49152;

interface Path {
  readonly flow: Flow;
  readonly key: string;
  users: number;
}

export class PathTable {
  private readonly paths: (Path | undefined)[] = [];

  constructor(private readonly gids: readonly Gid[]) {}

  /** @throws RangeError when the local address is unknown or of the other family */
  add(gid: Gid, localGidIndex: number): number {
    const local = this.gids[localGidIndex];
    if (!local) throw new RangeError(`local GID index ${localGidIndex}: ${this.gids.length} exist`);
    if (isIpv4Gid(local) !== isIpv4Gid(gid)) {
      throw new RangeError(`${ipFromGid(local)} cannot reach ${ipFromGid(gid)}: other family`);
    }
    const key = `${localGidIndex} ${ipFromGid(gid)}`;
    const known = this.paths.findIndex((path) => path?.key === key);
    if (known >= 0) {
      (this.paths[known] as Path).users++;
      return known;
    }
    const flow = new Flow(local, Uint8Array.from(gid), SOURCE_PORT, ROCE_UDP_PORT);
    const free = this.paths.indexOf(undefined);
    const at = free < 0 ? this.paths.length : free;
    this.paths[at] = { flow, key, users: 1 };
    return at;
  }

  /** @throws RangeError when there is no such path */
  remove(path: number): void {
    const entry = this.paths[path];
    if (!entry) throw new RangeError(`no path ${path}`);
    if (--entry.users === 0) this.paths[path] = undefined;
  }

  flow(path: number): Flow | undefined {
    return this.paths[path]?.flow;
  }

  /** Paths in use. */
  get size(): number {
    return this.paths.reduce((sum, path) => sum + (path ? 1 : 0), 0);
  }
}
