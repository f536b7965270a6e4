/**
 * Faults between a port and the network, beyond the links of a fabric. The own system refuses
 * packets; a link or router only carries smaller packets; true or forged ICMP arrives. The rules
 * are like those of packets (docs/mock.md).
 */
import {
  BOOLEAN,
  checkOptions,
  integer,
  kindOf,
  oneOf,
  optional,
  outOfRange,
  TEXT,
} from '../../core/spi/checks/index.js';
import {
  type Gid,
  gidFromIp,
  ipFromGid,
  isIpv4Gid,
  type NetworkReport,
  type PacketPortCounters,
} from '../../core/spi/index.js';
import {
  type FaultGrammar,
  type FaultRule,
  FaultScript,
} from '../../plugins/faults/grammar/fault-script.js';
import { ADDRESS } from '../../plugins/faults/grammar/packet-faults.js';
import { SeededRandom } from '../../plugins/faults/grammar/seeded-random.js';
import type { VirtualClock } from './virtual-clock.js';
import type { WirePacket } from './wire-packet.js';

/** An IP packet on its way to the network. */
interface Leaving {
  /** IP address in text. */
  readonly to: string;
  readonly packetBytes: number;
}

/** Selects packets: those to one address, or all. */
export interface PortMatch {
  readonly to?: string;
}

export type PortAction =
  /** The own system refuses every packet: its link is down, a filter, no memory. */
  | { readonly type: 'refuse'; readonly code: string }
  /** The own link carries IP packets up to `mtuBytes`; longer ones are refused (EMSGSIZE). */
  | { readonly type: 'own-mtu'; readonly mtuBytes: number }
  /** A router of the path does, and drops longer ones: with ICMP, or silently. */
  | { readonly type: 'path-mtu'; readonly mtuBytes: number; readonly silent: boolean };

export type PortFaultRule = FaultRule<PortMatch, PortAction>;

/** The least that IPv4 has; and no IP packet is longer than this. */
const MTU = integer(68, 65_535);

const PORT_FAULTS: FaultGrammar<Leaving, PortMatch, PortAction> = {
  match: { to: { kind: ADDRESS, agrees: (packet, to) => packet.to === to } },
  actions: {
    refuse: { code: TEXT },
    'own-mtu': { mtuBytes: MTU },
    'path-mtu': { mtuBytes: MTU, silent: BOOLEAN },
  },
  concerns: (action, { packetBytes }) => action.type === 'refuse' || packetBytes > action.mtuBytes,
};

export type IcmpReport = Extract<
  NetworkReport,
  { readonly type: 'port-unreachable' | 'unreachable' | 'too-big' }
>;
const REPORT = {
  type: oneOf(['port-unreachable', 'unreachable', 'too-big'] as const),
  gid: kindOf<Gid>('a GID of 16 bytes', (gid) => gid instanceof Uint8Array && gid.length === 16),
  mtuBytes: optional(integer(0, 65_535)),
};

/** Delay between a packet and its ICMP message. */
const ICMP_AFTER_US = 100;
/** A port tells the same of one destination that often at most. */
const QUIET_US = 100_000;

export class PortFaults extends FaultScript<Leaving, PortMatch, PortAction> {
  private readonly toldAtUs = new Map<string, number>();

  /** @internal */
  constructor(
    private readonly clock: VirtualClock,
    private readonly counters: PacketPortCounters,
    private readonly handler: (report: NetworkReport) => void,
    seed: number,
  ) {
    super(PORT_FAULTS, seed, (ofRule) => new SeededRandom(ofRule));
  }

  /**
   * Delivers a forged ICMP message, now, any number of times.
   * @throws RangeError for what is no report of ICMP
   */
  forge(report: IcmpReport): void {
    checkOptions<object>(report, REPORT, outOfRange);
    this.count(report);
    this.clock.at(this.clock.now(), () => this.handler(report));
  }

  /** @internal whether a packet is sent: if not, it is counted, and the caller's to release */
  lets(packet: WirePacket): boolean {
    const { to, destination: gid } = packet.flow;
    const packetBytes = packet.length + 8 + (isIpv4Gid(gid) ? 20 : 40);
    const action = this.decide({ to, packetBytes });
    if (action !== undefined) this.meet(action, packetBytes, to);
    return action === undefined;
  }

  private meet(fault: PortAction, packetBytes: number, to: string): void {
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
