/** Places for requests that wait for their consumers: of an address's share, and in a backlog. */
import type { Clock, Gid } from '../../../core/spi/index.js';
import type { CmCounters } from '../common/cm-counters.js';
import type { Listener } from './listeners.js';
import { Shares } from './shares.js';

export class Places {
  private readonly shares: Shares;

  constructor(
    limit: number,
    private readonly counters: CmCounters,
    private readonly clock: Clock,
  ) {
    this.shares = new Shares(limit);
  }

  /** False, and counted, when there is none; else both are to be given back, each by itself. */
  takeFor({ backlog }: Listener, peer: Gid): boolean {
    if (!this.shares.take(peer)) return this.refuse('overShare');
    if (backlog.take(peer, this.clock.now())) return true;
    this.shares.giveBack(peer);
    return this.refuse('overBacklog');
  }

  /** The share; the place in the backlog is its listener's. */
  giveBack(peer: Gid): void {
    this.shares.giveBack(peer);
  }

  private refuse(why: 'overShare' | 'overBacklog'): boolean {
    this.counters.requestsDropped++;
    this.counters[why]++;
    return false;
  }
}
