/**
 * Faults between ports and the fabric over time: refused packets, links and routers that carry
 * less, ICMP that is forged. What is forged costs no packet: no request may fail by it.
 */
import type {
  IcmpReport,
  PortAction,
  PortFaultRule,
  SeededRandom,
} from '../../providers/mock/index.js';
import type { FaultSchedule } from './fault-schedule.js';
import type { SimNode } from './sim-node.js';
import type { Trace } from './trace.js';

const MEAN_GAP_US = 4000;
/** Where nothing else happens. */
const MEAN_QUIET_GAP_US = 100;
const MOST_FORGED = 12;
/** IP packets: some of a path MTU of 1024 bytes fit, or none do but ACKs. */
const MTUS = [68, 300, 600, 1000];
const CODES = ['ENETUNREACH', 'EHOSTUNREACH', 'ENETDOWN', 'EPERM', 'ENOBUFS'];

export class PortFaultSchedule {
  /** By kind: how many there were. */
  readonly counts = new Map<string, number>();
  private stopped = false;

  constructor(
    private readonly nodes: readonly SimNode[],
    private readonly random: SeededRandom,
    private readonly losses: FaultSchedule,
    private readonly trace: Trace,
    /** On a network without faults nothing is lost, and ICMP is forged all the same. */
    private readonly quiet: boolean,
    private readonly after: (us: number, task: () => void) => void,
  ) {}

  start(): void {
    const meanUs = this.quiet ? MEAN_QUIET_GAP_US : MEAN_GAP_US;
    this.after(this.random.exponential(meanUs), () => {
      if (this.stopped) return;
      this.next();
      this.start();
    });
  }

  stop(): void {
    this.stopped = true;
    for (const { node } of this.nodes) node.port.faults.clear();
  }

  private next(): void {
    const { random } = this;
    const node = random.pick(this.nodes);
    const peer = random.pick(this.nodes.filter((other) => other !== node));
    if (this.quiet || random.percent(50)) this.forge(node, peer);
    else this.hinder(node, peer);
  }

  private forge(node: SimNode, peer: SimNode): void {
    const { random } = this;
    const [gid] = peer.node.port.gids;
    if (!gid) return;
    const report: IcmpReport = random.pick<IcmpReport>([
      { type: 'port-unreachable', gid },
      { type: 'unreachable', gid },
      { type: 'too-big', gid, mtuBytes: random.pick(MTUS) },
    ]);
    this.note(node, report, `icmp ${report.type}`);
    const count = random.between(1, MOST_FORGED);
    const gapUs = random.pick([1, 10, 1000, 120_000]);
    for (let i = 0; i < count; i++) {
      this.after(i * gapUs, () => {
        if (!this.stopped) node.node.port.faults.forge(report);
      });
    }
  }

  /** For a while, within what the retries last or beyond. */
  private hinder(node: SimNode, peer: SimNode): void {
    const { random } = this;
    const where = random.percent(50) ? {} : { to: peer.address };
    const mtuBytes = random.pick(MTUS);
    const action: PortAction = random.pick([
      { type: 'refuse', code: random.pick(CODES) },
      { type: 'own-mtu', mtuBytes },
      { type: 'path-mtu', mtuBytes, silent: random.percent(50) },
    ]);
    const rule: PortFaultRule = { match: { ...where, count: Infinity }, action };
    const forUs = random.percent(70) ? random.between(100, 3000) : random.between(60_000, 200_000);
    this.note(node, rule, action.type);
    this.losses.beginLoss();
    const fault = node.node.port.faults.add(rule);
    this.after(forUs, () => {
      fault.remove();
      if (!this.stopped) this.losses.endLoss();
    });
  }

  private note(node: SimNode, fault: PortFaultRule | IcmpReport, kind: string): void {
    this.counts.set(kind, (this.counts.get(kind) ?? 0) + 1);
    this.trace.note(`port of ${node.address}: ${JSON.stringify(fault)}`);
  }
}
