/**
 * One run: adapters on a fabric, work of every kind between them, an adversary on the path that
 * spares some of it; then quiet, in which everything must end; then nothing may be left.
 */
import { type Ia, type ManagementAgent, openIa } from '../../core/index.js';
import { OPERATION } from '../../core/spi/wire/opcode.js';
import { OPERATION_OF } from '../../core/spi/wire/packet-layout.js';
import { Fabric, mock, type MockNode, SeededRandom } from '../../providers/mock/index.js';
import type { TappedPacket } from '../../providers/mock/wire-packet.js';
import { Trace, Violation } from '../sim/trace.js';
import { Adversary } from './adversary.js';
import { CmLane, type CmLaneHost, VENDOR } from './cm-lane.js';
import { GUARD_BYTE, type GuardedMemory } from './guarded-memory.js';
import { ADVERSARY_PLANTS } from './plants.js';
import { Reachable, STRANGER } from './reachable.js';
import { SequenceOracle } from './sequence-oracle.js';
import { LANE_TYPES, type LaneHost, VerbsLane } from './verbs-lane.js';

export interface AdversaryOptions {
  readonly seed: number;
  /** Packets that the adversary is to forge. */
  readonly packets: number;
  /** A deliberate bug (test/adversary/plants.ts). */
  readonly plant?: string;
  readonly log?: (line: string) => void;
}

export interface AdversaryReport {
  readonly hash: string;
  readonly forged: number;
  readonly sent: number;
  readonly steps: number;
  readonly virtualUs: number;
  readonly wallMs: number;
  readonly marks: ReadonlyMap<string, number>;
}

/** The adversary is on the path between the first two; the third one's connections are spared. */
const ADDRESSES = ['10.0.0.1', '10.0.0.2', '10.0.0.3'] as const;
const FORGED_PERCENT = 65;
const VERIFY_STEPS = 20_000;
/** Virtual time within which everything must end once there is no adversary. */
const DRAIN_LIMIT_US = 180_000_000;
/** More than this many packets for each forged one are a storm. */
const MAX_PACKETS_PER_FORGED = 40;
const MAX_STEPS_PER_PACKET = 20;
const FREE_PACKETS = 200_000;
const GRAVES = 60;
const LEAK = Buffer.alloc(16, GUARD_BYTE);

export class AdversaryRun implements LaneHost, CmLaneHost {
  readonly random: SeededRandom;
  readonly fabric: Fabric;
  readonly trace: Trace;
  ending = false;
  readonly marks = new Map<string, number>();
  private readonly nodes: MockNode[] = [];
  private readonly ias: Ia[] = [];
  private readonly lanes: VerbsLane[] = [];
  private readonly cmLanes: CmLane[] = [];
  private readonly reachable = new Reachable();
  private readonly sequence = new SequenceOracle();
  /** Memory of lanes that are gone: nothing may change it any more. */
  private readonly graves: GuardedMemory[] = [];
  private steps = 0;
  private violation: unknown;

  constructor(readonly options: AdversaryOptions) {
    this.random = new SeededRandom(options.seed);
    this.fabric = new Fabric({ seed: this.random.u32(), mtuBytes: 1024 });
    this.trace = new Trace(() => this.fabric.clock.now(), options.log);
  }

  // --- LaneHost, CmLaneHost ---------------------------------------------------------------------

  after(us: number, task: () => void): void {
    const { clock } = this.fabric;
    clock.at(clock.now() + us, () => this.guard(task));
  }

  guard(handler: () => void): void {
    try {
      handler();
    } catch (error) {
      this.violation ??= error;
    }
  }

  note(line: string): void {
    this.trace.note(line);
  }

  mark(name: string): void {
    this.marks.set(name, (this.marks.get(name) ?? 0) + 1);
  }

  onOpen(lane: VerbsLane): void {
    this.mark(`${lane.type} lives`);
    this.reachable.add(lane);
    this.eachResponder(lane, (address, qpn, peer, peerQpn, end) => {
      this.sequence.add(address, qpn, peer, peerQpn, { end, mtuBytes: lane.mtuBytes });
    });
  }

  onClose(lane: VerbsLane): void {
    this.reachable.remove(lane);
    this.eachResponder(lane, (address, qpn, peer, peerQpn) => {
      this.sequence.remove(address, qpn, peer, peerQpn);
    });
    for (const { memory } of lane.sides) this.graves.push(memory);
    if (this.graves.length <= GRAVES) return;
    for (const grave of this.graves.splice(0, GRAVES / 2)) grave.verify('after the end');
  }

  private eachResponder(
    { type, sides }: VerbsLane,
    call: (address: string, qpn: number, peer: string, peerQpn: number, end: number) => void,
  ): void {
    if (type !== 'RC' && type !== 'XRC') return;
    sides.forEach(({ node, qp }, i) => {
      const other = sides[1 - i];
      const end = qp.query().receivePsn;
      if (!other || end === undefined) return;
      call(this.addressOf(node), qp.qpn, this.addressOf(other.node), other.qp.qpn, end);
    });
  }

  private addressOf(node: MockNode): string {
    return ADDRESSES[this.nodes.indexOf(node)] ?? '';
  }

  // --- the run ----------------------------------------------------------------------------------

  /** @throws Violation of what must survive */
  async run(): Promise<AdversaryReport> {
    const startedMs = performance.now();
    await this.open();
    const adversary = this.bringAdversary();
    for (const lane of [...this.lanes, ...this.cmLanes]) lane.start();
    const { packets } = this.options;
    await this.runWhile(() => adversary.forged < packets);
    await this.drain(adversary);
    const virtualUs = Math.round(this.fabric.clock.now());
    await this.close();
    for (const [name, count] of adversary.counts) this.marks.set(name, count);
    return {
      hash: this.trace.hash,
      forged: adversary.forged,
      sent: this.fabric.counters.sent,
      steps: this.steps,
      virtualUs,
      wallMs: performance.now() - startedMs,
      marks: this.marks,
    };
  }

  private async open(): Promise<void> {
    for (const address of ADDRESSES) {
      this.ias.push(await openIa(mock({ fabric: this.fabric, address })));
      const node = this.fabric.node(address);
      if (!node) throw new Error('a node that is not there');
      this.nodes.push(node);
      this.plant(node);
    }
    const [a, b, c] = this.nodes as [MockNode, MockNode, MockNode];
    for (const type of LANE_TYPES) {
      this.makeLane(type, false, a, b);
      this.makeLane(type, false, b, a);
      this.makeLane(type, false, c, a);
      this.makeLane(type, true, a, b);
      this.makeLane(type, true, b, c);
    }
    const agents = this.ias.map((ia) => this.makeAgents(ia));
    for (const [from, to] of [
      [0, 1],
      [1, 0],
      [0, 1],
      [0, 2],
      [2, 1],
    ] as const) {
      this.makeCmLane(from, to, agents);
    }
  }

  private plant(node: MockNode): void {
    const { plant } = this.options;
    if (plant === undefined) return;
    const apply = ADVERSARY_PLANTS[plant];
    if (!apply) {
      throw new RangeError(`no plant "${plant}": ${Object.keys(ADVERSARY_PLANTS).join(', ')}`);
    }
    apply(node);
  }

  private makeLane(type: VerbsLane['type'], spared: boolean, a: MockNode, b: MockNode): void {
    this.lanes.push(new VerbsLane(`v${this.lanes.length}`, type, spared, [a, b], this));
  }

  private makeCmLane(from: number, to: number, agents: readonly ManagementAgent[]): void {
    const spared = from === 2 || to === 2;
    const [ia, agent, target] = [this.ias[from], agents[from], this.ias[to]];
    if (!ia || !agent || !target) throw new Error('an adapter that is not there');
    const name = `d${this.cmLanes.length}`;
    const connQual = 7000 + this.cmLanes.length;
    const peer = { ia: target, address: ADDRESSES[to] ?? '' };
    this.cmLanes.push(new CmLane(name, spared, { ia, agent }, peer, connQual, this));
  }

  private makeAgents(ia: Ia): ManagementAgent {
    ia.mad.registerAgent({
      ...VENDOR,
      methods: [1],
      onRequest: async (request) => {
        const data = request.data.slice().reverse();
        await request.respond({ data, retries: 5 }).catch(() => undefined);
      },
    });
    return ia.mad.registerAgent(VENDOR);
  }

  private bringAdversary(): Adversary {
    const { fabric } = this;
    const reachable = this.reachable;
    const scene = {
      fabric,
      sources: [STRANGER, ...ADDRESSES],
      mayTake: reachable.mayTake.bind(reachable),
      maySend: reachable.maySend.bind(reachable),
      overheard: reachable.overheard.bind(reachable),
    };
    const adversary = new Adversary(scene, this.random.fork(), FORGED_PERCENT);
    const take = fabric.transmit.bind(fabric);
    fabric.transmit = (packet) => {
      this.guard(() => this.onSent(packet));
      take(packet);
    };
    fabric.tap = (event, packet) => {
      if (event === 'sent') this.trace.packet(packet);
      else this.sequence.delivered(packet);
    };
    return adversary;
  }

  /** A packet leaves its port, as the port has made it. */
  private onSent(packet: TappedPacket): void {
    this.sequence.sent(packet);
    const { buffer, length, flow } = packet;
    if (OPERATION_OF[buffer[0] ?? 0] !== OPERATION.readResponse) return;
    if (!Buffer.from(buffer.buffer, 0, length).includes(LEAK)) return;
    throw new Violation(`${flow.from} answers a READ with bytes that nothing grants`);
  }

  verify(what: string): void {
    for (const lane of this.lanes) {
      if (lane.open) for (const { memory } of lane.sides) memory.verify(what);
    }
    for (const lane of this.cmLanes) lane.verify(what);
    for (const grave of this.graves) grave.verify(`${what}, after the end`);
  }

  private async runWhile(condition: () => boolean): Promise<void> {
    const { counters } = this.fabric;
    const until = (): boolean => {
      this.steps++;
      if (this.steps % VERIFY_STEPS === 0) this.guard(() => this.verify('periodic check'));
      return !condition() || this.violation !== undefined || this.isStorm(counters.sent);
    };
    await this.fabric.run({ until });
    if (this.violation !== undefined) this.throw();
    if (this.isStorm(counters.sent)) {
      throw new Violation(`a storm: ${counters.sent} packets, ${this.steps} steps`);
    }
  }

  /** More packets or steps than the work and the adversary account for. */
  private isStorm(sent: number): boolean {
    const most = this.options.packets * MAX_PACKETS_PER_FORGED + FREE_PACKETS;
    return sent > most || this.steps > most * MAX_STEPS_PER_PACKET;
  }

  private async drain(adversary: Adversary): Promise<void> {
    this.ending = true;
    const { clock } = this.fabric;
    const limit = (us: number): number => clock.now() + us;
    // Those that are spared must end under its eyes, the others when it has gone.
    const spared = this.lanes.filter((lane) => lane.spared);
    await this.endAll(spared, limit(DRAIN_LIMIT_US));
    adversary.active = false;
    await this.endAll([...this.lanes, ...this.cmLanes], limit(DRAIN_LIMIT_US));
    for (const lane of this.lanes) if (lane.open) lane.tearDown('the run ends');
    this.verify('the end');
  }

  private async endAll(lanes: readonly (VerbsLane | CmLane)[], limitUs: number): Promise<void> {
    const { clock } = this.fabric;
    const busy = (): (VerbsLane | CmLane)[] => lanes.filter(({ idle }) => !idle);
    await this.runWhile(() => clock.now() < limitUs && busy().length > 0);
    const names = busy().map(({ name }) => name);
    if (names.length > 0) throw new Violation(`these do not end: ${names.join(', ')}`);
  }

  private async close(): Promise<void> {
    const closing = Promise.all(this.ias.map((ia) => ia.close('abrupt')));
    await this.fabric.run({ untilIdle: true });
    await closing;
    if (this.violation !== undefined) this.throw();
    for (const [i, { device, driver, port }] of this.nodes.entries()) {
      const { hca } = device;
      const left = {
        'queue pairs': hca.queuePairs.size,
        'shared receive queues': hca.sharedReceives.size,
        regions: hca.memory.size,
        windows: hca.memory.windows.size,
        timers: driver.timers.size,
        'port regions': port.usage.regions,
      };
      const leaked = Object.entries(left).filter(([, count]) => count > 0);
      if (leaked.length === 0) continue;
      throw new Violation(`${ADDRESSES[i]} leaks ${leaked.map((each) => each.join(' ')).join()}`);
    }
    const { inUse } = this.fabric.pool;
    if (inUse !== 0) throw new Violation(`${inUse} packets are neither delivered nor lost`);
  }

  private throw(): never {
    throw this.violation instanceof Error ? this.violation : new Error(String(this.violation));
  }
}

/** The command that repeats a run. */
export function commandOf({ seed, packets, plant }: AdversaryOptions): string {
  const more = plant === undefined ? '' : ` --plant ${plant}`;
  return `npm run adversary -- --seed ${seed} --packets ${packets}${more}`;
}
