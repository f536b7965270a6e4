/** Connections by the peer's address: hints of the network name nothing else. */
import { type Gid, ipFromGid, type NetworkReport } from '../../../core/spi/index.js';

/** A connection that hints of the network may be about. */
export interface ReportTaker {
  onReport(report: NetworkReport): void;
}

export class PeerTable {
  private readonly byAddress = new Map<string, Set<ReportTaker>>();
  private readonly addressOf = new Map<ReportTaker, string>();

  add(gid: Gid, qp: ReportTaker): void {
    const address = ipFromGid(gid);
    const qps = this.byAddress.get(address) ?? new Set();
    this.byAddress.set(address, qps.add(qp));
    this.addressOf.set(qp, address);
  }

  remove(qp: ReportTaker): void {
    const address = this.addressOf.get(qp);
    if (address === undefined) return;
    this.addressOf.delete(qp);
    const qps = this.byAddress.get(address);
    qps?.delete(qp);
    if (qps?.size === 0) this.byAddress.delete(address);
  }

  at(gid: Gid): Iterable<ReportTaker> {
    return this.byAddress.get(ipFromGid(gid)) ?? [];
  }
}
