/** Two endpoints that are connected, broken, torn down and connected anew. */
import { QpState } from '../../core/spi/index.js';
import type { SeededRandom } from '../../providers/mock/index.js';
import { Endpoint } from './endpoint.js';
import type { ConnectionParameters } from './connecting.js';
import type { SimNode } from './sim-node.js';
import type { Trace } from './trace.js';

export interface ConnectionHost {
  readonly random: SeededRandom;
  readonly trace: Trace;
  readonly quiet: boolean;
  /** Goes up whenever faults begin; faults may be at work while `faultsActive`. */
  readonly faultEpoch: number;
  readonly faultsActive: boolean;
  readonly nowUs: number;
  nextContext(): number;
  guard(handler: () => void): void;
  /** Runs a task at a later time, and keeps what it throws. */
  after(us: number, task: () => void): void;
  onBroken(connection: Connection): void;
}

export class Connection {
  a!: Endpoint;
  b!: Endpoint;
  open = false;
  /** It has failed and will be torn down. */
  failing = false;
  /** Share of receives among what each side posts, in percent. */
  receivePercent = 50;
  incarnation = 0;
  private epoch = 0;
  private openedQuietly = false;

  constructor(
    readonly name: string,
    private readonly nodeA: SimNode,
    private readonly nodeB: SimNode,
    private readonly host: ConnectionHost,
  ) {}

  get lossy(): boolean {
    const { faultsActive, faultEpoch } = this.host;
    return !this.possible || faultsActive || !this.openedQuietly || faultEpoch !== this.epoch;
  }

  get endpoints(): readonly Endpoint[] {
    return [this.a, this.b];
  }

  get idle(): boolean {
    return !this.open || (this.a.idle && this.b.idle);
  }

  /** Both HCAs are there. */
  get possible(): boolean {
    return !this.nodeA.removed && !this.nodeB.removed;
  }

  uses(node: SimNode): boolean {
    return node === this.nodeA || node === this.nodeB;
  }

  /** Marks it as failed. */
  fail(): this {
    this.failing = true;
    return this;
  }

  connect(): void {
    const { random, trace, faultEpoch, faultsActive } = this.host;
    this.incarnation++;
    this.epoch = faultEpoch;
    this.openedQuietly = !faultsActive;
    this.open = true;
    this.failing = false;
    this.receivePercent = random.pick([15, 30, 50, 60]);
    const parameters = this.parameters();
    const world = {
      isLossy: () => this.lossy,
      nowUs: () => this.host.nowUs,
      guard: (handler: () => void) => this.host.guard(handler),
      onBroken: () => this.onBroken(),
      onDrained: (endpoint: Endpoint) =>
        this.host.after(random.exponential(200), () => endpoint.resume()),
    };
    const make = (side: string, node: SimNode): Endpoint =>
      new Endpoint(
        `${this.name}${side}#${this.incarnation}`,
        this.host.nextContext(),
        node,
        parameters,
        random,
        world,
        trace,
      );
    this.a = make('a', this.nodeA);
    this.b = make('b', this.nodeB);
    this.a.peer = this.b;
    this.b.peer = this.a;
    const psns = [this.psn(), this.psn()] as const;
    this.a.connect(psns[0], psns[1]);
    this.b.connect(psns[1], psns[0]);
    trace.note(`${this.name}#${this.incarnation} connected, MTU ${parameters.mtuBytes}`);
  }

  /** Ends both sides through ERR: whatever is under way is flushed, read and checked. */
  tearDown(reason: string): void {
    const { random, trace } = this.host;
    trace.note(`${this.name}#${this.incarnation} torn down: ${reason}`);
    for (const endpoint of this.endpoints) endpoint.breakDown(reason);
    this.drain();
    for (const endpoint of this.endpoints) endpoint.checkEnd();
    this.settle('teardown');
    if (random.percent(50)) {
      for (const { qp } of this.endpoints) qp.modify({ state: QpState.RESET });
    }
    this.destroy();
  }

  /** Ends both sides in the midst of things: what is under way vanishes without completions. */
  drop(): void {
    const { random, trace } = this.host;
    trace.note(`${this.name}#${this.incarnation} dropped`);
    this.drain();
    if (random.percent(50)) {
      for (const { qp } of this.endpoints) qp.modify({ state: QpState.RESET });
      this.drain();
    }
    this.settle('drop');
    this.destroy();
  }

  verify(what: string): void {
    for (const endpoint of this.endpoints) endpoint.verify(what);
  }

  private onBroken(): void {
    if (this.failing) return;
    this.failing = true;
    this.host.onBroken(this);
  }

  private drain(): void {
    this.nodeA.drainEarly();
    this.nodeB.drainEarly();
  }

  private settle(what: string): void {
    for (const endpoint of this.endpoints) {
      endpoint.verify(what);
      endpoint.model.settle();
    }
  }

  private destroy(): void {
    for (const endpoint of this.endpoints) endpoint.destroy();
    this.open = false;
  }

  private psn(): number {
    const { random } = this.host;
    // Near the end of the numbers as often as anywhere else.
    return random.percent(50) ? 0xffffff - random.below(200) : random.below(1 << 24);
  }

  private parameters(): ConnectionParameters {
    const { random, quiet } = this.host;
    const patient = quiet || random.percent(80);
    return {
      mtuBytes: random.pick([256, 512, 1024]),
      timeout: random.between(quiet ? 10 : 8, 11),
      retryCount: patient ? 7 : random.between(1, 6),
      rnrRetryCount: patient ? 7 : random.between(3, 7),
      minRnrTimer: random.between(1, 12),
      readDepth: random.pick([1, 2, 4, 16]),
      queueDepth: random.pick([8, 16, 32]),
    };
  }
}
