/**
 * What XRC senders reach on a node: a domain with several shared receive queues, each of which is
 * of a protection domain of its own. Completions name the queue and the target queue pair.
 */
import type { ProtectionDomain, XrcDomainHandle } from '../../core/spi/index.js';
import type { SeededRandom } from '../../providers/mock/index.js';
import type { Completion } from './send-checker.js';
import { SharedReceives } from './shared-receives.js';
import type { CompletionTaker, SimNode } from './sim-node.js';
import { Violation } from './trace.js';

export interface XrcReceiver {
  readonly pd: ProtectionDomain;
  readonly shared: SharedReceives;
}

export class XrcReceivers implements CompletionTaker {
  readonly name: string;
  readonly domain: XrcDomainHandle;
  readonly receivers: readonly XrcReceiver[];
  /** Flows by the number of their target queue pair. */
  readonly flows = new Map<number, CompletionTaker>();

  constructor(
    node: SimNode,
    random: SeededRandom,
    guard: (handler: () => void) => void,
    after: (us: number, task: () => void) => void,
  ) {
    const { device } = node.node;
    this.name = `${node.address} XRC`;
    this.domain = device.createXrcDomain();
    const xrc = { domain: this.domain, cq: node.cq };
    this.receivers = Array.from({ length: random.between(2, 3) }, () => {
      const pd = device.createProtectionDomain();
      return { pd, shared: new SharedReceives(node, random, guard, after, { pd, xrc }) };
    });
    node.xrc = this;
  }

  take(completion: Completion): void {
    const flow = this.flows.get(completion.qpn);
    if (!flow) throw new Violation(`${this.name}: completion of target ${completion.qpn}`);
    flow.take(completion);
  }

  /** The queue that a completion names. */
  named(srqn: number): SharedReceives {
    const found = this.receivers.find(({ shared }) => shared.srq.srqn === srqn);
    if (!found) throw new Violation(`${this.name}: completion names SRQ ${srqn}`);
    return found.shared;
  }

  verify(what: string): void {
    for (const { shared } of this.receivers) shared.verify(what);
  }

  close(): void {
    for (const { shared, pd } of this.receivers) {
      shared.close();
      pd.destroy();
    }
    this.domain.destroy();
  }
}
