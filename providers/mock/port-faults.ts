/**
 * What goes wrong between a port and the network, where a fabric's links do not reach: the own
 * system refuses packets, a link or router carries less than they have, ICMP comes that is true,
 * or that is forged. Each is a plain value, so that a seed, or a script, can make it.
 */
import {
  gidFromIp,
  ipFromGid,
  isIpv4Gid,
  type NetworkReport,
  type PacketPortCounters,
} from '../../core/spi/index.js';
import type { VirtualClock } from './virtual-clock.js';
import type { WirePacket } from './wire-packet.js';

/** Packets to one address, or to all. */
interface Where {
  readonly to?: string;
}

export type PortFault =
  /** The own system refuses every packet: its link is down, a filter, no memory. */
  | ({ readonly type: 'refuse'; readonly code: string } & Where)
  /** The own link carries IP packets up to `mtuBytes`; longer ones are refused (EMSGSIZE). */
  | ({ readonly type: 'own-mtu'; readonly mtuBytes: number } & Where)
  /** A router on the way does, and drops longer ones: with ICMP, or silently. */
  | ({ readonly type: 'path-mtu'; readonly mtuBytes: number; readonly silent: boolean } & Where)
  /** ICMP, forged: once, as the fault is added, however often. Its destination is in the report. */
  | { readonly type: 'icmp'; readonly report: NetworkReport };

type LastingFault = Exclude<PortFault, { type: 'icmp' }>;

/** How long after a packet its ICMP comes back. */
const ICMP_AFTER_US = 100;
/** A port tells the same of one destination that often at most. */
const QUIET_US = 100_000;

export class PortFaults {
  private readonly faults = new Set<LastingFault>();
  private readonly toldAtUs = new Map<string, number>();

  constructor(
    private readonly clock: VirtualClock,
    private readonly counters: PacketPortCounters,
    private readonly handler: (report: NetworkReport) => void,
  ) {}

  get any(): boolean {
    return this.faults.size > 0;
  }

  /** @returns what ends it */
  add(fault: PortFault): () => void {
    if (fault.type === 'icmp') {
      this.count(fault.report);
      this.clock.at(this.clock.now(), () => this.handler(fault.report));
      return () => undefined;
    }
    this.faults.add(fault);
    return () => void this.faults.delete(fault);
  }

  clear(): void {
    this.faults.clear();
  }

  /** Whether a packet is sent: if not, it has been counted, and is the caller's to release. */
  lets(packet: WirePacket): boolean {
    const { to, destination: gid } = packet.flow;
    const packetBytes = packet.length + 8 + (isIpv4Gid(gid) ? 20 : 40);
    for (const fault of this.faults) {
      const others = fault.to !== undefined && fault.to !== to;
      if (others || (fault.type !== 'refuse' && packetBytes <= fault.mtuBytes)) continue;
      this.meet(fault, packetBytes, to);
      return false;
    }
    return true;
  }

  private meet(fault: LastingFault, packetBytes: number, to: string): void {
    const { counters } = this;
    const gid = gidFromIp(to);
    if (fault.type === 'path-mtu') {
      counters.sentPackets++;
      const { mtuBytes } = fault;
      if (!fault.silent) this.icmp({ type: 'too-big', gid, mtuBytes }, ICMP_AFTER_US);
      return;
    }
    counters.sendErrors++;
    if (fault.type === 'refuse') this.tell({ type: 'refused', gid, code: fault.code }, 0);
    else {
      counters.tooLong++;
      this.tell({ type: 'too-long', gid, packetBytes, mtuBytes: fault.mtuBytes }, 0);
    }
  }

  /** An ICMP message comes in. */
  icmp(report: NetworkReport, afterUs: number): void {
    this.count(report);
    this.tell(report, afterUs);
  }

  private count(report: NetworkReport): void {
    if (report.type === 'too-big') this.counters.icmpTooBig++;
    else this.counters.icmpUnreachable++;
  }

  /** Never from inside a call of the port's. */
  private tell(report: NetworkReport, afterUs: number): void {
    const key = `${report.type} ${ipFromGid(report.gid)}`;
    const nowUs = this.clock.now();
    if (nowUs - (this.toldAtUs.get(key) ?? -Infinity) < QUIET_US) return;
    this.toldAtUs.set(key, nowUs);
    this.clock.at(nowUs + afterUs, () => this.handler(report));
  }
}
