/** Limits pending requests: by the share of their address, and by the backlog of their listener. */
import type { Clock, Gid } from '../../../core/spi/index.js';
import type { CmCounters } from '../common/cm-counters.js';
import type { Listener } from './listeners.js';
import { Shares } from './shares.js';

export class HalfOpenLimit {
  private readonly shares: Shares;

  constructor(
    limit: number,
    private readonly counters: CmCounters,
    private readonly clock: Clock,
  ) {
    this.shares = new Shares(limit);
  }

  /** False, and counted, at a limit. Else the caller gives back share and backlog, each once. */
  takeFor({ backlog }: Listener, peer: Gid): boolean {
    if (!this.shares.take(peer)) return this.refuse('overShare');
    if (backlog.take(peer, this.clock.now())) return true;
    this.shares.giveBack(peer);
    return this.refuse('overBacklog');
  }

  /** Gives back the share. The caller gives back the place in the backlog to the listener. */
  giveBack(peer: Gid): void {
    this.shares.giveBack(peer);
  }

  private refuse(why: 'overShare' | 'overBacklog'): boolean {
    this.counters.requestsDropped++;
    this.counters[why]++;
    return false;
  }
}
