/**
 * One side of a connection (or of a pair of datagram queue pairs) with memory of every kind of
 * right, each area with guards around it, and what its queues owe: every request ends exactly once.
 */
import {
  type CompletionQueue,
  type MemoryRegion,
  type MemoryWindow,
  nameOf,
  nextRkey,
  type ProtectionDomain,
  QpType,
  type QueuePair,
  type SharedReceiveQueue,
  WcFlags,
  WcOpcode,
  WcStatus,
  WrOpcode,
  type XrcDomainHandle,
} from '../../core/spi/index.js';
import type { MockNode, SeededRandom } from '../../providers/mock/index.js';
import { Violation } from '../sim/trace.js';
import { type Completion, drain } from '../support/completions.js';
import { postReceive, postSend, postShared, type SendRequest } from '../support/hca-pair.js';
import type { Key } from './fields.js';
import type { Area, GuardedMemory } from './guarded-memory.js';
import {
  type AreaName,
  LENGTHS,
  RECEIVE_BYTES,
  REMOTE,
  RIGHTS,
  sideMemory,
  SLOT_BYTES,
  SLOTS,
  WINDOW,
} from './verbs-memory.js';

const QUEUE_DEPTH = 16;

/** A send request that has not ended. */
export interface Outstanding {
  readonly cookie: number;
  readonly signalled: boolean;
  readonly what: string;
  /** Takes a receive of the peer. */
  readonly message: boolean;
  /** Bytes of its own that it may change. */
  readonly landing?: Area;
  /** Called when it has succeeded. */
  readonly done?: () => void;
}

export type WindowState = 'free' | 'binding' | 'open' | 'closing';

export interface SideHost {
  readonly random: SeededRandom;
  guard(handler: () => void): void;
  /** A receive has ended well. */
  onReceive(side: VerbsSide, completion: Completion, bytes: Uint8Array): void;
  /** A request or a receive has failed, but for being flushed. */
  onFailure(side: VerbsSide, what: string): void;
}

export class VerbsSide {
  readonly memory: GuardedMemory;
  readonly areas: Readonly<Record<AreaName, Area>>;
  readonly base: bigint;
  readonly pd: ProtectionDomain;
  readonly qp: QueuePair;
  readonly cq: CompletionQueue;
  readonly srq: SharedReceiveQueue | undefined;
  readonly domain: XrcDomainHandle | undefined;
  readonly regions: Readonly<Record<AreaName, MemoryRegion>>;
  readonly window: MemoryWindow | undefined;
  windowState: WindowState = 'free';
  windowKey = 0;
  readonly sends: Outstanding[] = [];
  /** Slots of receives that are posted, by cookie, oldest first. */
  readonly receives = new Map<number, number>();
  /** Messages acknowledged and messages received, of this life. */
  delivered = 0;
  received = 0;
  private sendFailed = false;
  private receiveFailed = false;
  private readonly foreignPd: ProtectionDomain;
  private readonly landings = new Set<number>();
  private readonly freeSlots: number[] = [];
  private cookies = 0;
  private destroyed = false;

  constructor(
    readonly name: string,
    readonly node: MockNode,
    type: QpType,
    private readonly host: SideHost,
  ) {
    const { random } = host;
    const { device } = node;
    const { memory, areas } = sideMemory(name, random);
    this.memory = memory;
    this.areas = areas;
    this.base = BigInt(random.u32()) * 4096n;
    this.pd = device.createProtectionDomain();
    this.foreignPd = device.createProtectionDomain();
    this.regions = this.register();
    for (const name of ['target', 'words'] as const) memory.open(areas[name], 'new');
    this.cq = device.createCompletionQueue({
      minEntries: 256,
      onNotify: () => host.guard(() => this.onNotify()),
      onEvent: (event) => host.guard(() => this.violate(`completion queue event ${event}`)),
    });
    this.cq.arm(false);
    const xrc = type === QpType.XRC_INI || type === QpType.XRC_TGT;
    this.domain = xrc ? device.createXrcDomain() : undefined;
    if (this.domain && type === QpType.XRC_TGT) {
      this.srq = device.createSharedReceiveQueue({
        pd: this.pd,
        maxWr: SLOTS,
        maxSge: 1,
        onEvent: () => undefined,
        xrc: { domain: this.domain, cq: this.cq },
      });
    }
    this.qp = device.createQueuePair({
      type,
      pd: this.pd,
      sendCq: this.cq,
      receiveCq: this.cq,
      maxSendWr: QUEUE_DEPTH,
      maxReceiveWr: xrc ? 0 : QUEUE_DEPTH,
      maxSendSge: 2,
      maxReceiveSge: xrc ? 0 : 1,
      maxInlineBytes: 64,
      ...(this.domain && { xrcDomain: this.domain }),
      context: 7,
      onEvent: () => undefined,
    });
    if (type === QpType.RC) this.window = device.createMemoryWindow(this.pd, 2);
    this.windowKey = this.window?.rkey ?? 0;
    for (let slot = 0; slot < SLOTS; slot++) this.freeSlots.push(slot);
  }

  private register(): Record<AreaName, MemoryRegion> {
    const regions: Partial<Record<AreaName, MemoryRegion>> = {};
    for (const name of Object.keys(LENGTHS) as AreaName[]) {
      const { start, length } = this.areas[name];
      const bytes = this.memory.bytes.subarray(start, start + length);
      const pd = name === 'foreign' ? this.foreignPd : this.pd;
      regions[name] = pd.registerMemory(bytes, RIGHTS[name], this.base + BigInt(start));
    }
    return regions as Record<AreaName, MemoryRegion>;
  }

  /** All that a peer could name: what it may, and what it may not. */
  get keys(): Key[] {
    const all = (Object.keys(LENGTHS) as AreaName[]).map((name) => this.key(name));
    const often = (['target', 'words', 'foreign'] as const).map((name) => this.key(name));
    if (this.window) {
      const { start } = this.windowArea;
      const { length } = WINDOW;
      // Its next ones are not hard to guess.
      for (let key = nextRkey(this.windowKey), i = 0; i < 6; i++, key = nextRkey(key)) {
        all.push({ key, iova: this.base + BigInt(start), length });
      }
    }
    return [...all, ...often];
  }

  private key(name: AreaName): Key {
    const { start, length } = this.areas[name];
    return { key: this.regions[name].rkey, iova: this.base + BigInt(start), length };
  }

  get windowArea(): Area {
    return { start: this.areas.windowed.start + WINDOW.at, length: WINDOW.length };
  }

  get sendRoom(): number {
    return QUEUE_DEPTH - this.sends.length;
  }

  bytesAt({ start, length }: Area): Uint8Array {
    return this.memory.bytes.subarray(start, start + length);
  }

  // --- posting ----------------------------------------------------------------------------------

  postReceives(most: number): void {
    for (let i = Math.min(most, this.freeSlots.length); i > 0; i--) {
      const slot = this.freeSlots.shift() as number;
      const area = this.receiveArea(slot);
      this.memory.open(area, 'a receive is posted');
      const cookie = ++this.cookies * 2 + 1;
      this.receives.set(cookie, slot);
      const at = [{ offset: area.start, length: area.length, lkey: this.regions.receives.lkey }];
      const side = { base: this.base, region: this.regions.receives };
      if (this.srq) postShared(side, this.srq, slot, at, cookie);
      else postReceive(side, this.qp, at, cookie);
    }
  }

  post(request: SendRequest, rest: Omit<Outstanding, 'cookie'>): void {
    const cookie = ++this.cookies * 2;
    if (rest.landing) this.memory.open(rest.landing, 'a landing is posted');
    this.sends.push({ ...rest, cookie });
    const side = { base: this.base, region: this.regions.source };
    postSend(side, this.qp, { ...request, cookie });
  }

  /** A free place for what comes back, or undefined. */
  landing(length: number): Area | undefined {
    for (let slot = 0; slot < SLOTS; slot++) {
      const start = this.areas.landings.start + slot * (SLOT_BYTES + 64);
      if (this.landings.has(start)) continue;
      this.landings.add(start);
      return { start, length };
    }
    return undefined;
  }

  /** Binds the window to its part, under the next key. */
  bind(): void {
    const { window } = this;
    if (!window || this.windowState !== 'free') return;
    this.windowState = 'binding';
    const rkey = (this.windowKey = nextRkey(this.windowKey));
    const { start, length } = this.windowArea;
    const address = this.base + BigInt(start);
    const bind = { window, rkey, region: this.regions.windowed, address, length, access: REMOTE };
    this.memory.open(this.windowArea, 'a window is bound');
    const done = (): void => void (this.windowState = 'open');
    const what = 'BIND_MW';
    this.post({ opcode: WrOpcode.BIND_MW, bind }, { what, signalled: true, message: false, done });
  }

  // --- completions ------------------------------------------------------------------------------

  drain(): void {
    for (const completion of drain(this.cq)) {
      if (this.destroyed) this.violate('a completion after its end');
      if (completion.cookie % 2 === 1) this.takeReceive(completion);
      else this.takeSend(completion);
    }
  }

  private onNotify(): void {
    if (this.destroyed) this.violate('notified after its end');
    this.drain();
    this.cq.arm(false);
    this.drain();
  }

  private takeReceive(c: Completion): void {
    const slot = this.receives.get(c.cookie);
    const what = `receive ${c.cookie} ${nameOf(WcStatus, c.status)}`;
    if (slot === undefined) this.violate(`${what}: not posted, or ended twice`);
    if (c.qpn !== this.qp.qpn) this.violate(`${what}: of another queue pair, ${c.qpn}`);
    const [oldest] = this.receives.keys();
    if (oldest !== c.cookie && !this.srq) this.violate(`${what}: ${oldest} was posted before`);
    this.receives.delete(c.cookie);
    const area = this.receiveArea(slot);
    const bytes = this.bytesAt(area);
    if (c.status === WcStatus.SUCCESS) {
      if (this.receiveFailed && !this.srq) this.violate(`${what}: after a failure`);
      if (c.opcode === WcOpcode.RECV && c.byteLength > area.length) {
        this.violate(`${what}: ${c.byteLength} bytes`);
      }
      this.received++;
      if ((c.flags & WcFlags.WITH_INV) !== 0) this.onInvalidated(c.immediate);
      this.host.onReceive(this, c, bytes.subarray(0, c.byteLength));
    } else {
      this.receiveFailed = true;
      this.fail(c.status, what);
    }
    this.memory.close(area.start);
    this.freeSlots.push(slot);
  }

  private onInvalidated(key: number): void {
    if (key !== this.windowKey) this.violate(`key ${key} invalidated, not ${this.windowKey}`);
    this.windowState = 'free';
    this.memory.close(this.windowArea.start);
  }

  private takeSend(c: Completion): void {
    const at = this.sends.findIndex(({ cookie }) => cookie === c.cookie);
    const what = `send ${c.cookie} ${nameOf(WcStatus, c.status)}`;
    if (at < 0) this.violate(`${what}: not posted, or ended twice`);
    const ended = this.sends.splice(0, at + 1);
    const own = ended[at] as Outstanding;
    for (const silent of ended.slice(0, -1)) {
      if (silent.signalled || this.sendFailed)
        this.violate(`${silent.what} before ${what} has no end`);
      this.succeed(silent);
    }
    if (c.status === WcStatus.SUCCESS) {
      if (this.sendFailed) this.violate(`${what} (${own.what}): after a failure`);
      if (!own.signalled) this.violate(`${what} (${own.what}): it is unsignalled`);
      this.succeed(own);
    } else {
      this.sendFailed = true;
      this.release(own);
      this.fail(c.status, `${what} (${own.what})`);
    }
  }

  private succeed(own: Outstanding): void {
    if (own.message) this.delivered++;
    own.done?.();
    this.release(own);
  }

  private release({ landing }: Outstanding): void {
    if (!landing) return;
    this.memory.close(landing.start);
    this.landings.delete(landing.start);
  }

  private fail(status: number, what: string): void {
    if (status !== WcStatus.WR_FLUSH_ERR) this.host.onFailure(this, what);
  }

  // --- the end ----------------------------------------------------------------------------------

  /** In ERR, and all completions have been read: nothing is left that should have been told. */
  checkEnd(): void {
    const left = this.sends.filter(({ signalled }) => signalled);
    if (left.length > 0) this.violate(`${left.map(({ what }) => what).join(', ')} never ended`);
    if (this.receives.size > 0 && !this.srq) this.violate(`${this.receives.size} receives left`);
  }

  destroy(): void {
    this.memory.verify('the end');
    this.destroyed = true;
    this.qp.destroy();
    this.srq?.destroy();
    this.window?.destroy();
    for (const region of Object.values(this.regions)) region.destroy();
    this.domain?.destroy();
    this.cq.destroy();
    this.pd.destroy();
    this.foreignPd.destroy();
    this.memory.closeAll();
  }

  private receiveArea(slot: number): Area {
    const start = this.areas.receives.start + slot * (RECEIVE_BYTES + 64);
    return { start, length: RECEIVE_BYTES };
  }

  private violate(what: string): never {
    throw new Violation(`${this.name}: ${what}`);
  }
}
