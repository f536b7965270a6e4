/** Counted destinations: the same arguments give the same number until all users have let go. */
import { type Gid, ipFromGid, isIpv4Gid } from '../../core/spi/index.js';

interface Entry {
  readonly key: string;
  readonly path: number;
  users: number;
}

export class PathTable {
  private readonly byKey = new Map<string, Entry>();
  private readonly byPath = new Map<number, Entry>();

  constructor(private readonly gids: readonly Gid[]) {}

  /**
   * @param kind paths of different kinds are different paths
   * @param create makes a path that is not there yet
   * @throws RangeError when the local address is unknown or of another family
   */
  add(gid: Gid, localGidIndex: number, create: () => number, kind = ''): number {
    const local = this.gids[localGidIndex];
    if (!local) throw new RangeError(`no local address ${String(localGidIndex)}`);
    if (isIpv4Gid(local) !== isIpv4Gid(gid)) {
      throw new RangeError(`${ipFromGid(local)} cannot reach ${ipFromGid(gid)}: other family`);
    }
    const key = `${String(localGidIndex)} ${gid.join(' ')} ${kind}`;
    let entry = this.byKey.get(key);
    if (!entry) {
      entry = { key, path: create(), users: 0 };
      this.byKey.set(key, entry);
      this.byPath.set(entry.path, entry);
    }
    entry.users++;
    return entry.path;
  }

  /**
   * @returns true if that was the last user
   * @throws RangeError when there is no such path
   */
  remove(path: number): boolean {
    const entry = this.byPath.get(path);
    if (!entry) throw new RangeError(`no path ${String(path)}`);
    if (--entry.users > 0) return false;
    this.byKey.delete(entry.key);
    this.byPath.delete(path);
    return true;
  }
}
