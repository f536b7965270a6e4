/**
 * One side of a connection: a queue pair, its memory with the model of it, and the checkers of its
 * two queues. What it posts comes from `workload.ts`.
 */
import {
  Access,
  AsyncEventType,
  type MemoryRegion,
  nameOf,
  QpState,
  QpType,
  type QueuePair,
  WcStatus,
  WrOpcode,
} from '../../core/spi/index.js';
import type { SeededRandom } from '../../providers/mock/index.js';
import { type ConnectionParameters, connectQueuePair, REMOTE } from './connecting.js';
import { type Layout, layoutOf, SLOTS } from './layout.js';
import { MemoryModel } from './memory-model.js';
import { ReceiveChecker } from './receive-checker.js';
import {
  type ReceiveRequest,
  scatter,
  type SendRequest,
  writeReceive,
  writeSend,
} from './requests.js';
import {
  type Completion,
  consumesReceive,
  isAbuse,
  SendChecker,
  type SendWorld,
} from './send-checker.js';
import type { CompletionTaker, SimNode } from './sim-node.js';
import type { SharedReceives } from './shared-receives.js';
import { type Trace, Violation } from './trace.js';
import { Windows } from './windows.js';

export const MAX_SGE = 4;
const LAST_TOLD_WITHIN_US = 10;
export const MAX_INLINE = 128;

/** What an endpoint knows of the world around its connection. */
export interface EndpointWorld {
  /** Whether packets may have been lost since the connection was made. */
  isLossy(): boolean;
  nowUs(): number;
  /** Runs a handler and keeps what it throws. */
  guard(handler: () => void): void;
  /** The queue pair has failed. */
  onBroken(endpoint: Endpoint): void;
  /** All that its send queue had begun has ended. */
  onDrained(endpoint: Endpoint): void;
}

export class Endpoint implements CompletionTaker {
  readonly layout: Layout;
  readonly base: bigint;
  readonly model: MemoryModel;
  readonly qp: QueuePair;
  readonly sends: SendChecker;
  readonly receives: ReceiveChecker;
  readonly source: MemoryRegion;
  readonly receive: MemoryRegion;
  readonly target: MemoryRegion;
  readonly landing: MemoryRegion;
  readonly windows: Windows;
  /** Where its receives come from, if it has none of its own. */
  readonly shared: SharedReceives | undefined;
  /** READs under way of each of the peer's target slots; landing and receive slots in use. */
  readonly reading = new Uint8Array(SLOTS.TARGET);
  readonly landingUsed = new Set<number>();
  readonly receiveUsed = new Set<number>();
  peer!: Endpoint;
  nextSend = 0;
  nextReceive = 0;
  nextCookie = 1;
  unsignalled = 0;
  /** Why the queue pair is in ERR: what must explain flushed requests. */
  readonly reasons: string[] = [];
  destroyed = false;
  /** Its target memory has been deregistered while the peer may still reach for it. */
  revoked = false;
  /** In SQD, or on the way there. */
  paused = false;
  private partialKept = false;
  /** When a completion or an event has told that it is broken. */
  private toldAtUs = Infinity;
  private lastReceiveTold = false;

  constructor(
    readonly name: string,
    readonly context: number,
    readonly node: SimNode,
    readonly parameters: ConnectionParameters,
    random: SeededRandom,
    private readonly world: EndpointWorld,
    private readonly trace: Trace,
  ) {
    const { mtuBytes, queueDepth } = parameters;
    this.layout = layoutOf(mtuBytes * random.between(2, 6) + 8 * random.below(4));
    this.base = BigInt(random.u32()) * 65536n + BigInt(random.below(65536));
    const bytes = new Uint8Array(this.layout.totalBytes);
    const words = new Uint32Array(bytes.buffer);
    for (let i = 0; i < words.length; i++) words[i] = random.u32();
    this.model = new MemoryModel(name, bytes);
    this.sends = new SendChecker(name);
    this.receives = new ReceiveChecker(name);
    const { source, sourceBytes, receive, receiveBytes } = this.layout;
    const { target, targetBytes, landing, landingBytes } = this.layout;
    this.source = this.register(source, sourceBytes, 0);
    this.receive = this.register(receive, receiveBytes, Access.LOCAL_WRITE);
    const bindable = Access.LOCAL_WRITE | Access.MW_BIND | REMOTE;
    this.target = this.register(target, targetBytes, bindable);
    this.landing = this.register(landing, landingBytes, Access.LOCAL_WRITE);
    this.windows = new Windows(name, node);
    this.shared = random.percent(40) ? node.shared : undefined;
    if (this.shared) this.shared.users += 1;
    this.qp = node.node.device.createQueuePair({
      type: QpType.RC,
      pd: node.pd,
      sendCq: node.cq,
      receiveCq: node.cq,
      ...(this.shared && { srq: this.shared.srq }),
      maxSendWr: queueDepth,
      maxReceiveWr: queueDepth,
      maxSendSge: MAX_SGE,
      maxReceiveSge: MAX_SGE,
      maxInlineBytes: MAX_INLINE,
      context,
      onEvent: (event) => world.guard(() => this.onEvent(event)),
    });
    node.takers.set(context, this);
  }

  private register(offset: number, length: number, access: number): MemoryRegion {
    const bytes = this.model.bytes.subarray(offset, offset + length);
    return this.node.pd.registerMemory(bytes, access, this.base + BigInt(offset));
  }

  // --- state ------------------------------------------------------------------------------------

  /** To RTS, connected with the peer. */
  connect(sendPsn: number, receivePsn: number): void {
    const gid = this.peer.node.node.port.gids[0];
    if (!gid) throw new Error('a port without an address');
    const { qpn } = this.peer.qp;
    connectQueuePair(this.qp, this.parameters, gid, qpn, sendPsn, receivePsn);
  }

  get broken(): boolean {
    return this.qp.state === QpState.ERR;
  }

  /** Nothing is under way in its send queue. */
  get idle(): boolean {
    return this.sends.outstanding.length === 0;
  }

  /** A message has begun to fill a receive. */
  get receiving(): boolean {
    const qp = this.node.node.device.hca.queuePairs.find(this.qp.qpn);
    return qp !== undefined && qp.receiveEntry >= 0;
  }

  /** Free entries of the send queue. */
  get sendRoom(): number {
    return this.qp.sendRing.entries - this.sends.outstanding.length;
  }

  get receiveRoom(): number {
    const entries = this.qp.receiveRing?.entries ?? 0;
    return Math.min(entries, SLOTS.RECEIVE) - this.receives.outstanding.length;
  }

  /** Moves it to ERR, for a reason. */
  breakDown(reason: string): void {
    if (this.broken) return;
    this.reasons.push(reason);
    this.qp.modify({ state: QpState.ERR });
  }

  /** Takes its target memory away from the peer, whatever is under way. */
  revoke(): void {
    this.revoked = this.receives.revoked = true;
    this.windows.destroy();
    this.target.destroy();
  }

  /** Lets the send queue drain (SQD); it goes on some time after SQ_DRAINED. */
  pause(): void {
    if (this.paused || this.qp.state !== QpState.RTS) return;
    this.paused = true;
    this.qp.modify({ state: QpState.SQD, enableSqdAsyncNotify: true });
  }

  resume(): void {
    if (this.destroyed || this.qp.state !== QpState.SQD) return;
    this.paused = false;
    this.qp.modify({ state: QpState.RTS });
  }

  /** Ends it: its memory and its number are gone. Its completions must have been read. */
  destroy(): void {
    this.destroyed = true;
    this.node.takers.delete(this.context);
    this.qp.destroy();
    this.windows.destroy();
    this.node.invalidations += this.windows.invalidations;
    if (this.shared) this.shared.users -= 1;
    for (const region of [this.source, this.receive, this.target, this.landing]) region.destroy();
  }

  // --- posting ----------------------------------------------------------------------------------

  postSend(request: SendRequest): void {
    writeSend(this.qp, this.base, request);
    this.nextSend = request.index + 1;
    this.sends.post(request);
    if (consumesReceive(request.opcode) && request.plan === 'ok') {
      this.peer.receives.messages.push(request);
    }
    for (const effect of request.remote) this.peer.model.begin(effect);
    for (const effect of request.local) this.model.begin(effect);
    if (request.readsSlot >= 0) this.lock(request.readsSlot, 1);
    if (request.landingSlot >= 0) this.landingUsed.add(request.landingSlot);
  }

  postReceive(request: ReceiveRequest): void {
    const ring = this.qp.receiveRing;
    if (!ring) throw new Error('a queue pair without a receive ring');
    writeReceive(ring, this.base, request);
    this.nextReceive = request.index + 1;
    this.receives.post(request);
    this.receiveUsed.add(request.slot);
  }

  // --- completions and events -------------------------------------------------------------------

  take(completion: Completion): void {
    if (this.destroyed) throw new Violation(`${this.name}: a completion after its end`);
    if (completion.qpn !== this.qp.qpn) {
      throw new Violation(`${this.name}: completion names QP ${completion.qpn}`);
    }
    // Which queue it is of, a failed completion tells by its cookie: receives are odd.
    if (completion.cookie % 2 === 1) this.takeReceive(completion);
    else this.takeSend(completion);
  }

  /** Checks the bytes of all memory; requests under way may or may not have been executed. */
  verify(what: string): void {
    this.model.verify(`${what}, ${this.name}`, this.receives.effectsUnderWay());
  }

  /** Everything has been flushed and read: nothing is left, and something explains it. */
  checkEnd(): void {
    this.succeed(this.sends.endSilently(), `${this.name}: the end`);
    this.receives.checkFlushed();
    const { received, refused } = this.peer.receives;
    if (received + refused < this.sends.delivered) {
      throw new Violation(
        `${this.name}: ${this.sends.delivered} messages acknowledged, ${received} received`,
      );
    }
    if (this.shared && this.world.nowUs() > this.toldAtUs + LAST_TOLD_WITHIN_US) {
      if (!this.lastReceiveTold) throw new Violation(`${this.name}: no LAST_WQE_REACHED`);
    }
    if (this.reasons.length === 0) {
      throw new Violation(`${this.name}: in ERR, and nothing has happened to it`);
    }
  }

  /** All that the peer has sent up to a request has been executed here, says a completion. */
  confirm(request: SendRequest, what: string): void {
    for (const earlier of this.sends.outstanding) {
      if (earlier.index > request.index) break;
      this.confirmRemote(earlier, what);
    }
    this.confirmRemote(request, what);
  }

  private confirmRemote(request: SendRequest, what: string): void {
    for (const effect of request.remote) {
      if (this.peer.model.pending.has(effect)) this.peer.model.commit(effect, what);
    }
  }

  private takeSend(completion: Completion): void {
    const ended = this.sends.complete(completion, this.sendWorld());
    const what = `${this.name}: completion of send ${completion.wqeIndex}`;
    for (const { request } of ended) {
      if (request.readsSlot >= 0) this.lock(request.readsSlot, -1);
      if (request.landingSlot >= 0) this.landingUsed.delete(request.landingSlot);
    }
    const succeeded = ended.filter((each) => each.status === WcStatus.SUCCESS);
    this.succeed(
      succeeded.map(({ request }) => request),
      what,
    );
    const { status } = completion;
    if (status === WcStatus.SUCCESS || status === WcStatus.WR_FLUSH_ERR) return;
    this.fail(`send ${completion.wqeIndex} ${nameOf(WcStatus, status)}`);
  }

  private succeed(requests: readonly SendRequest[], what: string): void {
    for (const request of requests) {
      this.confirmRemote(request, what);
      for (const effect of request.local) this.model.commit(effect, what);
      if (request.bind) this.windows.bound(request.bind.rkey, request.bind.given);
      else if (request.opcode === WrOpcode.LOCAL_INV) this.windows.invalidated(request.immediate);
    }
  }

  private takeReceive(completion: Completion): void {
    const { shared } = this;
    const receive = shared?.take(completion, this.name) ?? this.receives.take(completion);
    const message = this.receives.complete(receive, completion, this.broken);
    if (!shared) this.receiveUsed.delete(receive.slot);
    const what = `${this.name}: completion of receive ${completion.wqeIndex}`;
    if (message) {
      this.peer.confirm(message, what);
      if (message.remote.length === 0) {
        for (const effect of scatter(message.payload, receive.segments)) {
          (shared?.model ?? this.model).commit(effect, what);
        }
      }
      shared?.adopt(receive);
      if (message.opcode === WrOpcode.SEND_WITH_INV) this.windows.invalidated(message.immediate);
      return;
    }
    if (shared) shared.adopt(receive);
    else this.keepPartial(receive);
    if (completion.status === WcStatus.WR_FLUSH_ERR) return;
    this.fail(`receive ${completion.wqeIndex} ${nameOf(WcStatus, completion.status)}`);
  }

  /** A message that had begun to arrive stays in the first failed receive as far as it came. */
  private keepPartial(receive: ReceiveRequest): void {
    if (this.partialKept) return;
    this.partialKept = true;
    const message = this.receives.messages[this.receives.received];
    if (!message || message.remote.length > 0) return;
    for (const effect of scatter(message.payload, receive.segments)) this.model.begin(effect);
  }

  private onEvent(event: AsyncEventType): void {
    if (this.destroyed) throw new Violation(`${this.name}: event ${event} after its end`);
    const name = nameOf(AsyncEventType, event);
    this.trace.note(`${this.name} event ${name}`);
    if (event === AsyncEventType.COMM_EST) return;
    if (event === AsyncEventType.QP_LAST_WQE_REACHED && this.shared && !this.lastReceiveTold) {
      if (!this.broken) throw new Violation(`${this.name}: ${name} before ERR`);
      this.lastReceiveTold = true;
    } else if (event === AsyncEventType.SQ_DRAINED && this.paused) this.world.onDrained(this);
    else if (event === AsyncEventType.QP_ACCESS_ERR && this.isReachedFor()) this.fail(name);
    else throw new Violation(`${this.name}: event ${name}, and nothing explains it`);
  }

  /** Whether the peer may have reached for memory that it has no right to. */
  private isReachedFor(): boolean {
    const { outstanding, failure } = this.peer.sends;
    const refused = failure === WcStatus.REM_ACCESS_ERR || this.peer.broken;
    return this.revoked || refused || outstanding.some(isAbuse);
  }

  private fail(reason: string): void {
    this.reasons.push(reason);
    this.toldAtUs = Math.min(this.toldAtUs, this.world.nowUs());
    this.trace.note(`${this.name} broken: ${reason}`);
    this.world.onBroken(this);
  }

  private sendWorld(): SendWorld {
    return {
      unreachable: this.world.isLossy() || this.peer.broken || this.peer.destroyed,
      revoked: this.peer.revoked,
      revokedHere: this.revoked,
      rnrLimited: this.parameters.rnrRetryCount < 7,
      broken: this.broken,
      tooLong: (request) => this.peer.receives.tooLong(request),
    };
  }

  private lock(slot: number, change: 1 | -1): void {
    this.reading[slot] = (this.reading[slot] ?? 0) + change;
  }
}
