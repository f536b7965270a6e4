/**
 * Connections that answered READs straight from a region's memory, without a copy. They are told
 * before that memory goes, since their peers may not have received the answers.
 */
import type { Region } from './region.js';
import type { RcZeroCopyReads } from '../rc/zero-copy-reads.js';

export class UnreadAnswers {
  private readonly keepers = new Map<Region, Set<RcZeroCopyReads>>();

  add(region: Region, keeper: RcZeroCopyReads): void {
    const known = this.keepers.get(region);
    if (known) known.add(keeper);
    else this.keepers.set(region, new Set([keeper]));
  }

  remove(region: Region, keeper: RcZeroCopyReads): void {
    const known = this.keepers.get(region);
    if (known?.delete(keeper) === true && known.size === 0) this.keepers.delete(region);
  }

  keep(region: Region, key: number): void {
    for (const keeper of this.keepers.get(region) ?? []) keeper.keep(region, key);
  }

  forget(region: Region): void {
    const known = this.keepers.get(region);
    this.keepers.delete(region);
    for (const keeper of known ?? []) keeper.forget(region);
  }

  /** Regions that answers may be unread of. */
  get size(): number {
    return this.keepers.size;
  }
}
