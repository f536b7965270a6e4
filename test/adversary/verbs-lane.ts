/**
 * Work over one pair of queue pairs, connected by hand: of a lane that is spared every byte and
 * every end must be right; of one that is not, each request ends once and memory keeps its guards.
 * What has failed is torn down and made anew.
 */
import { type AddressHandle, QpState, QpType, type QueuePair } from '../../core/spi/index.js';
import type { MockNode, SeededRandom } from '../../providers/mock/index.js';
import { connectQueuePair } from '../sim/connecting.js';
import { Violation } from '../sim/trace.js';
import type { Completion } from '../support/completions.js';
import { LaneWork, UD_QKEY_BASE } from './lane-work.js';
import { REMOTE } from './verbs-memory.js';
import { type SideHost, VerbsSide } from './verbs-side.js';

export const LANE_TYPES = ['RC', 'UC', 'UD', 'XRC'] as const;
export type LaneType = (typeof LANE_TYPES)[number];

/** Queue pair types of the side that begins and of the other one. */
// prettier-ignore
const TYPES: Readonly<Record<LaneType, readonly [QpType, QpType]>> = {
  RC:  [QpType.RC, QpType.RC],
  UC:  [QpType.UC, QpType.UC],
  UD:  [QpType.UD, QpType.UD],
  XRC: [QpType.XRC_INI, QpType.XRC_TGT],
};

export interface LaneHost {
  readonly random: SeededRandom;
  readonly ending: boolean;
  after(us: number, task: () => void): void;
  guard(handler: () => void): void;
  note(line: string): void;
  onOpen(lane: VerbsLane): void;
  onClose(lane: VerbsLane): void;
}

const MEAN_ACTION_US = 250;
const MEAN_LIFE_US = 20_000;
const MEAN_REPAIR_US = 300;

export class VerbsLane implements SideHost {
  a!: VerbsSide;
  b!: VerbsSide;
  open = false;
  lives = 0;
  readonly random: SeededRandom;
  mtuBytes = 256;
  qkey = 0;
  private works: readonly LaneWork[] = [];
  private handles: AddressHandle[] = [];

  constructor(
    readonly name: string,
    readonly type: LaneType,
    readonly spared: boolean,
    private readonly nodes: readonly [MockNode, MockNode],
    private readonly host: LaneHost,
  ) {
    this.random = host.random.fork();
  }

  get sides(): readonly VerbsSide[] {
    return [this.a, this.b];
  }

  /** Nothing is under way. */
  get idle(): boolean {
    return !this.open || this.sides.every(({ sends }) => sends.length === 0);
  }

  start(): void {
    const { random } = this;
    this.lives++;
    const [typeA, typeB] = TYPES[this.type];
    const [nodeA, nodeB] = this.nodes;
    const prefix = `${this.name} ${this.type}${this.spared ? ' spared' : ''} #${this.lives}`;
    this.a = new VerbsSide(`${prefix} a`, nodeA, typeA, this);
    this.b = new VerbsSide(`${prefix} b`, nodeB, typeB, this);
    this.mtuBytes = random.pick([256, 512, 1024]);
    this.connect();
    this.open = true;
    this.host.onOpen(this);
    const { lives } = this;
    this.works = this.sides.map(
      (side, i) =>
        new LaneWork(this, side, this.sides[1 - i] as VerbsSide, this.handles[i]?.handle),
    );
    for (const work of this.works) this.act(work, lives);
    this.in(MEAN_LIFE_US, lives, () => this.tearDown('its time has come'));
  }

  private connect(): void {
    const { random } = this;
    const psn = (): number =>
      random.percent(50) ? 0xffffff - random.below(50) : random.u32() >>> 8;
    const psns = [psn(), psn()] as const;
    const parameters = {
      mtuBytes: this.mtuBytes,
      timeout: random.between(9, 11),
      retryCount: 7,
      rnrRetryCount: 7,
      minRnrTimer: random.between(1, 8),
      readDepth: random.pick([1, 2, 4]),
      queueDepth: 16,
    };
    this.sides.forEach((side, i) => {
      const peer = this.sides[1 - i] as VerbsSide;
      const gid = peer.node.port.gids[0]!;
      const [own, theirs] = i === 0 ? psns : [psns[1], psns[0]];
      if (this.type === 'RC') {
        connectQueuePair(side.qp, parameters, gid, peer.qp.qpn, own, theirs);
      } else if (this.type === 'UD') this.datagrams(side, own);
      else this.connectOther(side, peer, own, theirs, parameters);
    });
    this.handles = [];
    if (this.type !== 'UD') return;
    this.handles = this.sides.map((side, i) =>
      side.node.device.createAddressHandle(side.pd, {
        gid: (this.sides[1 - i] as VerbsSide).node.port.gids[0]!,
        localGidIndex: 0,
      }),
    );
  }

  private datagrams({ qp }: VerbsSide, psn: number): void {
    this.qkey = UD_QKEY_BASE + (this.random.u32() >>> 4);
    const { qkey } = this;
    for (const each of this.sides) if (each.qp === qp) this.toInit(qp, { qkey });
    qp.modify({ state: QpState.RTR });
    qp.modify({ state: QpState.RTS, sendPsn: psn });
  }

  private toInit(
    qp: QueuePair,
    rest: { readonly qkey?: number; readonly accessFlags?: number },
  ): void {
    qp.modify({ state: QpState.INIT, pkeyIndex: 0, portNumber: 1, ...rest });
  }

  private connectOther(
    side: VerbsSide,
    peer: VerbsSide,
    sendPsn: number,
    receivePsn: number,
    p: Parameters<typeof connectQueuePair>[1],
  ): void {
    const { qp } = side;
    const target = qp.type === QpType.XRC_TGT;
    this.toInit(qp, { accessFlags: REMOTE });
    qp.modify({
      state: QpState.RTR,
      addressVector: { gid: peer.node.port.gids[0]!, localGidIndex: 0 },
      pathMtuBytes: p.mtuBytes,
      destinationQpn: peer.qp.qpn,
      receivePsn,
      ...(target && { maxDestRdAtomic: p.readDepth, minRnrTimer: p.minRnrTimer }),
    });
    if (target) return;
    const retries = {
      timeout: p.timeout,
      retryCount: 7,
      rnrRetryCount: 7,
      maxRdAtomic: p.readDepth,
    };
    const initiator = qp.type === QpType.XRC_INI;
    qp.modify({ state: QpState.RTS, sendPsn, ...(initiator && retries) });
  }

  // --- life -------------------------------------------------------------------------------------

  private in(meanUs: number, lives: number, task: () => void): void {
    this.host.after(this.random.exponential(meanUs), () => {
      if (this.open && this.lives === lives) task();
    });
  }

  private act(work: LaneWork, lives: number): void {
    this.in(MEAN_ACTION_US, lives, () => {
      if (work.broken) return this.onBroken(lives);
      work.act(this.host.ending);
      this.act(work, lives);
    });
  }

  private onBroken(lives: number): void {
    if (this.spared) throw new Violation(`${this.name}: spared, and in ERR`);
    this.in(MEAN_REPAIR_US, lives, () => this.tearDown('broken'));
  }

  /** Ends both sides through ERR, looks at everything, and begins anew. */
  tearDown(reason: string): void {
    this.host.note(`${this.name} #${this.lives} torn down: ${reason}`);
    for (const { qp } of this.sides) {
      if (qp.state !== QpState.ERR) qp.modify({ state: QpState.ERR });
    }
    for (const side of this.sides) side.drain();
    for (const side of this.sides) side.checkEnd();
    if (this.spared) this.checkDelivered();
    for (const handle of this.handles) handle.destroy();
    this.open = false;
    this.host.onClose(this);
    for (const side of this.sides) side.destroy();
    if (this.host.ending) return;
    this.host.after(this.random.exponential(MEAN_REPAIR_US), () => {
      if (!this.host.ending) this.start();
    });
  }

  private checkDelivered(): void {
    if (this.type !== 'RC' && this.type !== 'XRC') return;
    this.sides.forEach(({ delivered, name }, i) => {
      const received = this.sides[1 - i]?.received ?? 0;
      if (received >= delivered) return;
      throw new Violation(`${name}: ${delivered} messages acknowledged, ${received} received`);
    });
  }

  // --- SideHost ---------------------------------------------------------------------------------

  guard(handler: () => void): void {
    this.host.guard(handler);
  }

  onReceive(side: VerbsSide, completion: Completion, bytes: Uint8Array): void {
    // What a side receives is what the other one's work has sent.
    if (this.spared) this.works[side === this.a ? 1 : 0]?.check(completion, bytes);
  }

  onFailure(side: VerbsSide, what: string): void {
    if (this.spared) throw new Violation(`${side.name}: spared, and ${what}`);
    this.host.note(`${side.name}: ${what}`);
  }
}
