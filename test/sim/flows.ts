/** Flows of messages one way, beside the connections: their lives, and their end. */
import type { SeededRandom } from '../../providers/mock/index.js';
import type { ConnectionHost } from './connection.js';
import type { FlowSender } from './flow-sender.js';
import type { MemoryModel } from './memory-model.js';
import type { SimNode } from './sim-node.js';
import { UcFlow } from './uc-flow.js';
import { XrcFlow } from './xrc-flow.js';
import { XrcReceivers } from './xrc-receivers.js';

const MEAN_ACTION_US = 150;
/** UC waits for nobody: it would post more than all others. */
const MEAN_UC_ACTION_US = 250;
const MEAN_LIFE_US = 30_000;
const MAX_GRAVES = 20;

export interface Flow {
  readonly name: string;
  readonly from: SimNode;
  readonly to: SimNode;
  readonly sender: FlowSender;
  readonly models: readonly MemoryModel[];
  /** Posts a burst of requests; how many. */
  post(most: number): number;
  /** Posts receives. */
  feed(most: number): void;
  /** Makes the end of unsignalled requests visible. */
  marker(): void;
  verify(what: string): void;
  /** Through ERR: what is under way is flushed, read and checked. */
  end(): void;
}

export interface FlowHost {
  readonly random: SeededRandom;
  readonly trace: ConnectionHost['trace'];
  readonly quiet: boolean;
  nextContext(): number;
  guard(handler: () => void): void;
  mark(name: string): void;
  isLossy(flow: Flow): boolean;
  onFlowBroken(flow: Flow): void;
}

interface Place {
  readonly kind: typeof UcFlow | typeof XrcFlow;
  readonly name: string;
  readonly from: SimNode;
  readonly to: SimNode;
  flow: Flow | undefined;
  life: number;
  epoch: number;
  openedQuietly: boolean;
}

export class Flows implements FlowHost {
  readonly random: SeededRandom;
  readonly marks = new Map<string, number>();
  posted = 0;
  private readonly places: Place[] = [];
  private readonly graves: MemoryModel[] = [];
  private ending = false;

  constructor(
    private readonly host: ConnectionHost,
    nodes: readonly SimNode[],
    random: SeededRandom,
  ) {
    this.random = random;
    const guard = (handler: () => void): void => host.guard(handler);
    const after = (us: number, task: () => void): void => host.after(us, task);
    for (const node of nodes) new XrcReceivers(node, random.fork(), guard, after);
    nodes.forEach((from, i) => {
      const others = nodes.filter((node) => node !== from);
      this.add(XrcFlow, `x${i}`, from, random.pick(others));
      if (i < 2) this.add(UcFlow, `u${i}`, from, random.pick(others));
    });
  }

  get trace(): ConnectionHost['trace'] {
    return this.host.trace;
  }

  get quiet(): boolean {
    return this.host.quiet;
  }

  get busy(): readonly string[] {
    const places = this.places.filter(({ flow }) => flow && flow.sender.room < 16);
    return places.map(({ name }) => name);
  }

  nextContext(): number {
    return this.host.nextContext();
  }

  guard(handler: () => void): void {
    this.host.guard(handler);
  }

  mark(name: string): void {
    this.marks.set(name, (this.marks.get(name) ?? 0) + 1);
  }

  isLossy(flow: Flow): boolean {
    const { faultsActive, faultEpoch } = this.host;
    const place = this.places.find((each) => each.flow === flow);
    const removed = flow.from.removed || flow.to.removed;
    return removed || faultsActive || !place?.openedQuietly || faultEpoch !== place.epoch;
  }

  onFlowBroken(flow: Flow): void {
    const place = this.places.find((each) => each.flow === flow);
    if (place) this.endLater(place, this.random.exponential(500));
  }

  start(): void {
    for (const place of this.places) this.open(place);
  }

  onRemoval(node: SimNode): void {
    for (const place of this.places) {
      if (place.from === node || place.to === node) this.endLater(place, 500);
    }
  }

  /** Receives for what is under way, and a way to see its end. */
  feed(): void {
    this.ending = true;
    for (const { flow } of this.places) {
      if (!flow || flow.sender.broken) continue;
      flow.feed(16);
      flow.marker();
    }
  }

  verify(what: string): void {
    for (const { flow } of this.places) flow?.verify(what);
    for (const node of new Set(this.places.map(({ to }) => to))) node.xrc?.verify(what);
    for (const grave of this.graves) grave.verify(`${what}, after the end`);
  }

  close(): void {
    this.ending = true;
    for (const place of this.places) this.end(place);
  }

  private add(kind: Place['kind'], name: string, from: SimNode, to: SimNode): void {
    const fresh = { flow: undefined, life: 0, epoch: 0, openedQuietly: false };
    this.places.push({ kind, name, from, to, ...fresh });
  }

  private open(place: Place): void {
    const { kind, from, to, name } = place;
    if (this.ending || from.removed || to.removed) return;
    const { faultEpoch, faultsActive } = this.host;
    place.life++;
    place.epoch = faultEpoch;
    place.openedQuietly = !faultsActive;
    place.flow = new kind(`${name}#${place.life}`, from, to, this);
    this.trace.note(`${place.flow.name} from ${from.address} to ${to.address}`);
    this.endLater(place, this.random.exponential(MEAN_LIFE_US));
    this.act(place, place.life);
  }

  private act(place: Place, life: number): void {
    const meanUs = place.kind === UcFlow ? MEAN_UC_ACTION_US : MEAN_ACTION_US;
    this.host.after(this.random.exponential(meanUs), () => {
      if (this.ending || place.life !== life || !place.flow) return;
      const most = this.random.between(1, 5);
      if (this.random.percent(50)) place.flow.feed(most);
      else this.posted += place.flow.post(most);
      this.act(place, life);
    });
  }

  private endLater(place: Place, us: number): void {
    const { life } = place;
    this.host.after(us, () => {
      if (place.life !== life || !place.flow || this.ending) return;
      this.end(place);
      this.host.after(this.random.exponential(1000), () => this.open(place));
    });
  }

  private end(place: Place): void {
    const { flow } = place;
    if (!flow) return;
    this.trace.note(`${flow.name} ends`);
    flow.end();
    place.flow = undefined;
    this.graves.push(...flow.models);
    while (this.graves.length > MAX_GRAVES) this.graves.shift()?.verify('after the end');
  }
}
