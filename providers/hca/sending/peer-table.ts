/** Connections by the peer's address: hints of the network name nothing else. */
import { type Gid, ipFromGid, type NetworkReport } from '../../../core/spi/index.js';
import type { RcQueuePair } from '../rc/queue-pair.js';

export class PeerTable {
  private readonly byAddress = new Map<string, Set<RcQueuePair>>();
  private readonly addressOf = new Map<RcQueuePair, string>();

  add(gid: Gid, qp: RcQueuePair): void {
    const address = ipFromGid(gid);
    const qps = this.byAddress.get(address) ?? new Set();
    this.byAddress.set(address, qps.add(qp));
    this.addressOf.set(qp, address);
  }

  remove(qp: RcQueuePair): void {
    const address = this.addressOf.get(qp);
    if (address === undefined) return;
    this.addressOf.delete(qp);
    const qps = this.byAddress.get(address);
    qps?.delete(qp);
    if (qps?.size === 0) this.byAddress.delete(address);
  }

  at(gid: Gid): Iterable<RcQueuePair> {
    return this.byAddress.get(ipFromGid(gid)) ?? [];
  }
}
