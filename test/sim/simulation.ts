/**
 * One run: nodes on a fabric, connections between them, a random workload, faults; then quiet, in
 * which everything must end; then teardown, after which nothing may be left.
 */
import { WcStatus, nameOf } from '../../core/spi/index.js';
import type { HcaParameters } from '../../providers/hca/index.js';
import { Fabric, SeededRandom } from '../../providers/mock/index.js';
import { Connection, type ConnectionHost } from './connection.js';
import type { Endpoint } from './endpoint.js';
import { FaultSchedule } from './fault-schedule.js';
import { Flows } from './flows.js';
import type { MemoryModel } from './memory-model.js';
import type { SimOptions } from './options.js';
import { PLANTS } from './plants.js';
import { PortFaultSchedule } from './port-fault-schedule.js';
import { SimNode } from './sim-node.js';
import { Trace, Violation } from './trace.js';
import { Workload } from './workload.js';

export interface SimReport {
  readonly hash: string;
  readonly ops: number;
  readonly packets: number;
  readonly steps: number;
  readonly connections: number;
  readonly virtualUs: number;
  readonly wallMs: number;
  readonly fabric: Readonly<Record<string, number>>;
  /** How often each thing was seen: completion statuses, drops and counters of the HCAs. */
  readonly marks: ReadonlyMap<string, number>;
}

const MEAN_ACTION_US = 60;
const MEAN_LIFE_US = 40_000;
/** Virtual time within which everything must end once the faults have. */
const DRAIN_LIMIT_US = 5_000_000;
const FEED_US = 200;
const VERIFY_STEPS = 5000;
const DROP_TRIES = 50;
const MAX_GRAVES = 40;

export class Simulation implements ConnectionHost {
  readonly random: SeededRandom;
  readonly fabric: Fabric;
  readonly trace: Trace;
  readonly nodes: SimNode[] = [];
  readonly connections: Connection[] = [];
  readonly workload: Workload;
  readonly flows: Flows;
  readonly faults: FaultSchedule;
  readonly portFaults: PortFaultSchedule;
  readonly quiet: boolean;
  steps = 0;
  /** No new work; broken connections are not made again. */
  ending = false;
  private violation: unknown;
  private contexts = 0;
  private connects = 0;
  /** Memory of endpoints that are gone: late packets must not change it. */
  private readonly graves: MemoryModel[] = [];

  constructor(readonly options: SimOptions) {
    this.random = new SeededRandom(options.seed);
    this.quiet = options.quiet;
    const bandwidth = this.random.pick([1e9, 10e9, 100e9]);
    const link = { bandwidth: this.quiet ? 100e9 : bandwidth };
    this.fabric = new Fabric({ seed: this.random.u32(), mtuBytes: 1024, link });
    this.trace = new Trace(() => this.fabric.clock.now(), options.log);
    this.fabric.tap = (_event, packet) => this.trace.packet(packet);
    const count = options.nodes || this.random.between(2, 4);
    for (let i = 1; i <= count; i++) {
      const address = `10.0.0.${i}`;
      const guard = (handler: () => void): void => this.guard(handler);
      const after = (us: number, task: () => void): void => this.after(us, task);
      this.nodes.push(
        new SimNode(
          address,
          this.fabric,
          this.hcaParameters(),
          this.trace,
          guard,
          after,
          this.random.fork(),
        ),
      );
    }
    this.workload = new Workload(this.random.fork(), true);
    const addresses = this.nodes.map(({ address }) => address);
    const { fabric, trace } = this;
    this.faults = new FaultSchedule(fabric, addresses, this.random.fork(), trace, options);
    // Its own source: the other draws of a seed stay what they are.
    const portRandom = new SeededRandom(options.seed + 1);
    this.portFaults = new PortFaultSchedule(
      this.nodes,
      portRandom,
      this.faults,
      trace,
      options.quiet,
      (us, task) => this.after(us, task),
    );
    this.makeConnections();
    this.flows = new Flows(this, this.nodes, this.random.fork());
  }

  get faultEpoch(): number {
    return this.faults.epoch;
  }

  get faultsActive(): boolean {
    return this.faults.active;
  }

  get nowUs(): number {
    return this.fabric.clock.now();
  }

  /** Send requests so far. */
  get posted(): number {
    return this.workload.posted + this.flows.posted;
  }

  nextContext(): number {
    return ++this.contexts;
  }

  guard(handler: () => void): void {
    try {
      handler();
    } catch (error) {
      this.violation ??= error;
    }
  }

  onBroken(connection: Connection): void {
    this.after(this.random.exponential(500), () => {
      if (connection.open && connection.failing) this.tearDown(connection, 'failed');
    });
  }

  /** Runs a task at a later time, and keeps what it throws. */
  after(us: number, task: () => void): void {
    const { clock } = this.fabric;
    clock.at(clock.now() + us, () => this.guard(task));
  }

  /** @throws Violation of what the checkers check */
  async run(): Promise<SimReport> {
    const started = performance.now();
    this.applyPlant();
    for (const connection of this.connections) this.connect(connection);
    this.flows.start();
    this.faults.start();
    if (this.options.ports) this.portFaults.start();
    this.planRemoval();
    const { options } = this;
    this.stepWhile(() => this.posted < options.ops && this.steps < options.steps);
    this.drain();
    await this.close();
    return {
      hash: this.trace.hash,
      ops: this.posted,
      packets: this.fabric.counters.sent,
      steps: this.steps,
      connections: this.connects,
      virtualUs: Math.round(this.fabric.clock.now()),
      wallMs: performance.now() - started,
      fabric: { ...this.fabric.counters },
      marks: this.marks(),
    };
  }

  /** Memory of all endpoints, the living and the dead. */
  verify(what: string): void {
    for (const connection of this.connections) if (connection.open) connection.verify(what);
    for (const { shared } of this.nodes) shared.verify(what);
    this.flows.verify(what);
    for (const grave of this.graves) grave.verify(`${what}, after the end`);
  }

  private marks(): Map<string, number> {
    const marks = new Map<string, number>();
    const add = (name: string, count: number): void =>
      void marks.set(name, (marks.get(name) ?? 0) + count);
    for (const [name, count] of this.flows.marks) add(name, count);
    for (const [name, count] of this.portFaults.counts) add(name, count);
    for (const { node, statuses, shared, invalidations } of this.nodes) {
      add('limits told', shared.told);
      add('keys invalidated', invalidations);
      for (const [status, count] of statuses) add(nameOf(WcStatus, status), count);
      const { drops, ...counters } = { ...node.device.counters };
      for (const [name, count] of Object.entries(drops)) add(`drop ${name}`, count);
      for (const [name, count] of Object.entries(counters)) add(name, count);
      add('badIcrc', node.port.counters.badIcrc);
    }
    return marks;
  }

  /**
   * Small windows make what is rare otherwise common: READs in many chunks, waiting, bursts of one.
   */
  private hcaParameters(): Partial<HcaParameters> {
    const { random } = this;
    return {
      windowPackets: random.pick([2, 4, 8, 32, 256]),
      burstPackets: random.pick([1, 4, 64]),
      // Forged hints shall do what they can.
      ...(this.options.ports && { unreachableRetryUs: 0 }),
    };
  }

  private makeConnections(): void {
    this.nodes.forEach((nodeA, i) => {
      for (const [j, nodeB] of this.nodes.entries()) {
        if (j <= i) continue;
        for (let n = this.random.between(1, 3); n > 0; n--) {
          const name = `c${this.connections.length}`;
          this.connections.push(new Connection(name, nodeA, nodeB, this));
        }
      }
    });
  }

  private connect(connection: Connection): void {
    connection.connect();
    this.connects++;
    const { incarnation } = connection;
    for (const side of [0, 1] as const) this.act(connection, incarnation, side);
    this.after(this.random.exponential(MEAN_LIFE_US), () => {
      if (this.ending || !connection.open || connection.incarnation !== incarnation) return;
      if (this.random.percent(70)) this.tearDown(connection, 'its time has come');
      else this.drop(connection, incarnation, DROP_TRIES);
    });
  }

  /** Drops a connection, in the midst of a message if there soon is one. */
  private drop(connection: Connection, incarnation: number, tries: number): void {
    if (this.ending || !connection.open || connection.incarnation !== incarnation) return;
    if (tries === 0 || connection.endpoints.some(({ receiving }) => receiving)) {
      this.end(connection, () => connection.drop());
      return;
    }
    this.after(this.random.exponential(20), () => this.drop(connection, incarnation, tries - 1));
  }

  /** One side posts something, again and again as long as the connection lives. */
  private act(connection: Connection, incarnation: number, side: 0 | 1): void {
    this.after(this.random.exponential(MEAN_ACTION_US), () => {
      const alive = connection.open && connection.incarnation === incarnation;
      if (this.ending || !alive) return;
      const endpoint = connection.endpoints[side];
      if (!endpoint) return;
      if (this.random.percent(1)) this.meddle(endpoint);
      if (this.random.percent(5)) endpoint.shared?.meddle();
      const most = this.random.between(1, 6);
      if (this.random.percent(connection.receivePercent)) {
        this.workload.postReceives(endpoint, most);
      } else this.workload.postSends(endpoint, most);
      this.act(connection, incarnation, side);
    });
  }

  /** What consumers do besides posting. */
  private meddle(endpoint: Endpoint): void {
    const kind = this.random.below(10);
    if (kind < 4) endpoint.pause();
    else if (kind < 9) endpoint.node.node.device.progress();
    else if (!endpoint.revoked) {
      this.trace.note(`${endpoint.name} takes its target memory away`);
      endpoint.verify('revocation');
      endpoint.revoke();
    }
  }

  /** One HCA is pulled out in some runs. */
  private planRemoval(): void {
    if (this.quiet || this.nodes.length < 3 || !this.random.percent(25)) return;
    const node = this.random.pick(this.nodes);
    this.after(this.random.exponential(30_000), () => {
      if (this.ending) return;
      this.trace.note(`${node.address} is removed`);
      const hit = this.connections.filter((each) => each.open && each.uses(node));
      for (const { endpoints } of hit) {
        for (const endpoint of endpoints) {
          if (endpoint.node === node) endpoint.reasons.push('removal');
        }
      }
      node.remove();
      this.flows.onRemoval(node);
      for (const connection of hit) this.onBroken(connection.fail());
    });
  }

  private tearDown(connection: Connection, reason: string): void {
    this.end(connection, () => connection.tearDown(reason));
  }

  private end(connection: Connection, end: () => void): void {
    end();
    for (const { model } of connection.endpoints) this.graves.push(model);
    if (this.graves.length > MAX_GRAVES) {
      for (const grave of this.graves.splice(0, 2)) grave.verify('after the end');
    }
    if (this.ending) return;
    this.after(this.random.exponential(1000), () => {
      if (!this.ending && connection.possible) this.connect(connection);
    });
  }

  private stepWhile(condition: () => boolean): void {
    while (condition()) {
      if (!this.fabric.step()) break;
      this.steps++;
      if (this.steps % VERIFY_STEPS === 0) this.guard(() => this.verify('periodic check'));
      if (this.violation !== undefined) this.throw();
    }
  }

  private throw(): never {
    throw this.violation instanceof Error ? this.violation : new Error(String(this.violation));
  }

  /** No faults and no new work: whatever is under way must end by itself. */
  private drain(): void {
    this.ending = true;
    this.faults.stop();
    this.portFaults.stop();
    const { clock } = this.fabric;
    const deadlineUs = clock.now() + DRAIN_LIMIT_US;
    const busy = (): Connection[] => this.connections.filter(({ idle }) => !idle);
    const feed = (): void => {
      if (busy().length + this.flows.busy.length === 0) return;
      this.flows.feed();
      for (const { open, endpoints } of this.connections) {
        if (!open) continue;
        for (const endpoint of endpoints) {
          this.workload.postReceives(endpoint, 16);
          this.workload.postMarker(endpoint);
        }
      }
      this.after(FEED_US, feed);
    };
    this.guard(feed);
    const left = (): number => busy().length + this.flows.busy.length;
    this.stepWhile(() => left() > 0 && clock.now() < deadlineUs);
    const flows = this.flows.busy;
    if (flows.length > 0) throw new Violation(`flows do not end: ${flows.join(', ')}`);
    const [stuck] = busy();
    if (stuck) {
      const { a, b } = stuck;
      const waiting = [a, b].map(({ name, sends }) => `${name} ${sends.outstanding.length}`);
      throw new Violation(`requests do not end without faults: ${waiting.join(', ')}`);
    }
  }

  private async close(): Promise<void> {
    this.flows.close();
    for (const connection of this.connections) {
      if (connection.open) this.tearDown(connection, 'the run ends');
    }
    this.stepWhile(() => this.fabric.clock.pending > 0);
    this.guard(() => this.verify('end'));
    if (this.violation !== undefined) this.throw();
    for (const node of this.nodes) await node.close();
    this.stepWhile(() => this.fabric.clock.pending > 0);
    const { inUse } = this.fabric.pool;
    if (inUse !== 0) throw new Violation(`${inUse} packets are neither delivered nor lost`);
  }

  private applyPlant(): void {
    const { plant } = this.options;
    if (plant === undefined) return;
    const apply = PLANTS[plant];
    if (!apply) {
      throw new RangeError(`no plant "${plant}": there are ${Object.keys(PLANTS).join(', ')}`);
    }
    apply(this);
  }
}
