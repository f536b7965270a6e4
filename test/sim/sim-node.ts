/** One HCA of the simulation: a node with a completion queue that endpoints share. */
import {
  AsyncEventType,
  type CompletionQueue,
  nameOf,
  type ProtectionDomain,
} from '../../core/spi/index.js';
import { type Fabric, MockNode, type SeededRandom } from '../../providers/mock/index.js';
import type { HcaParameters } from '../../providers/hca/index.js';
import { SharedReceives } from './shared-receives.js';
import { type Completion, readCompletion } from './send-checker.js';
import { type Trace, Violation } from './trace.js';
import type { XrcReceivers } from './xrc-receivers.js';

const NOTIFY_WITHIN_US = 10;

export interface CompletionTaker {
  readonly name: string;
  take(completion: Completion): void;
}

export class SimNode {
  readonly node: MockNode;
  readonly pd: ProtectionDomain;
  readonly cq: CompletionQueue;
  readonly shared: SharedReceives;
  /** Endpoints by the context number of their queue pairs. */
  readonly takers = new Map<number, CompletionTaker>();
  /** Takes completions of XRC receives, which have no context. */
  xrc: XrcReceivers | undefined;
  /** Completions by status. */
  readonly statuses = new Map<number, number>();
  notifications = 0;
  /** Keys of windows that have been taken back. */
  invalidations = 0;
  /** It has been pulled out. */
  removed = false;
  private fatalEvents = 0;
  private destroyed = false;

  /**
   * @param guard runs a handler and keeps what it throws
   * @param after does so later
   */
  constructor(
    readonly address: string,
    fabric: Fabric,
    parameters: Partial<HcaParameters>,
    private readonly trace: Trace,
    guard: (handler: () => void) => void,
    private readonly after: (us: number, task: () => void) => void,
    random: SeededRandom,
  ) {
    this.node = new MockNode(fabric, { addresses: [address], parameters });
    const { device } = this.node;
    device.setEventHandler((event) => guard(() => this.onDeviceEvent(event)));
    this.pd = device.createProtectionDomain();
    this.cq = device.createCompletionQueue({
      minEntries: 4096,
      onNotify: () => guard(() => this.onNotify()),
      onEvent: (event) =>
        guard(() => {
          throw new Violation(`${address}: completion queue event ${event}`);
        }),
    });
    this.cq.arm(false);
    this.shared = new SharedReceives(this, random, guard, after);
  }

  /** Reads all completions for someone who was not told of them, but who is about to be. */
  drainEarly(): void {
    if (this.cq.poll() > 0) {
      const seen = this.notifications;
      this.after(NOTIFY_WITHIN_US, () => {
        if (this.notifications > seen) return;
        throw new Violation(`${this.address}: completions came, and an armed queue did not tell`);
      });
    }
    this.drain();
  }

  /** Reads all completions. */
  drain(): void {
    const { cq } = this;
    for (let count = cq.poll(); count > 0; count--) {
      const { ring } = cq;
      const completion = readCompletion(ring.words, ring.wordOf(ring.consumer));
      ring.consumer += 1;
      const { context, status, wqeIndex } = completion;
      this.trace.numbers(context, status, wqeIndex);
      this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
      const taker = context === 0 ? this.xrc : this.takers.get(context);
      if (!taker) {
        throw new Violation(`${this.address}: completion of a queue pair that is gone: ${context}`);
      }
      taker.take(completion);
    }
  }

  /** Destroys what the node has and checks that nothing is left of it. */
  async close(): Promise<void> {
    const { driver, device, port } = this.node;
    const { hca } = device;
    this.shared.close();
    this.xrc?.close();
    const left = {
      'queue pairs': hca.queuePairs.size,
      'shared receive queues': hca.sharedReceives.size,
      'memory regions': hca.memory.size,
      'memory windows': hca.memory.windows.size,
      timers: driver.timers.size,
      'port regions': port.usage.regions,
      'port paths': port.usage.paths,
    };
    for (const [what, count] of Object.entries(left)) {
      if (count !== 0) throw new Violation(`${this.address} leaks ${count} ${what}`);
    }
    this.cq.destroy();
    this.pd.destroy();
    this.destroyed = true;
    await this.node.close();
  }

  /** Pulls it out; everything on it must end by itself. */
  remove(): void {
    this.removed = true;
    this.node.remove();
    this.after(NOTIFY_WITHIN_US, () => {
      if (this.fatalEvents !== 1) throw new Violation(`${this.address}: removal was not told`);
    });
  }

  private onDeviceEvent(event: AsyncEventType): void {
    this.trace.note(`${this.address} event ${nameOf(AsyncEventType, event)}`);
    if (event !== AsyncEventType.DEVICE_FATAL || !this.removed || ++this.fatalEvents > 1) {
      throw new Violation(`${this.address}: device event ${event}, and nothing explains it`);
    }
  }

  private onNotify(): void {
    if (this.destroyed) throw new Violation(`${this.address}: notified after the end`);
    this.notifications++;
    this.drain();
    this.cq.arm(false);
    this.drain();
  }
}
