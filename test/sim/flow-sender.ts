/**
 * The sending side of a one-way flow (UC, XRC): a queue pair with memory to send from and memory
 * where READs and atomics land, and the checker of its send queue.
 */
import {
  Access,
  type MemoryRegion,
  nameOf,
  QpState,
  type QueuePair,
  type QueuePairInit,
  WcStatus,
  WrFlags,
  WrOpcode,
} from '../../core/spi/index.js';
import type { SeededRandom } from '../../providers/mock/index.js';
import { type Effect, MemoryModel } from './memory-model.js';
import { gather, type Segment, type SendRequest, writeSend } from './requests.js';
import { type Completion, consumesReceive, SendChecker, type SendWorld } from './send-checker.js';
import type { CompletionTaker, SimNode } from './sim-node.js';
import { Violation } from './trace.js';

/** Largest message of a flow. */
export const FLOW_BYTES = 3000;
const GUARD_BYTES = 512;
const SOURCE = GUARD_BYTES;
const SOURCE_BYTES = 2 * FLOW_BYTES;
const LANDING = SOURCE + SOURCE_BYTES + GUARD_BYTES;
const LANDING_SLOTS = 8;
const TOTAL_BYTES = LANDING + LANDING_SLOTS * FLOW_BYTES + GUARD_BYTES;
const QUEUE_DEPTH = 16;
const MAX_INLINE = 128;

export type FlowDraft = Pick<SendRequest, 'opcode' | 'length'> & Partial<SendRequest>;

export interface FlowSenderWorld {
  sendWorld(): SendWorld;
  /** It has done all that it does. */
  onSucceeded(request: SendRequest, what: string): void;
  onFailed(reason: string): void;
}

/** What all flows make their sending queue pairs of. */
export type SenderInit = Omit<QueuePairInit, 'type' | 'receiveCq' | 'onEvent'>;

export class FlowSender implements CompletionTaker {
  readonly model: MemoryModel;
  readonly qp: QueuePair;
  readonly checker: SendChecker;
  private readonly base: bigint;
  private readonly source: MemoryRegion;
  private readonly landingMr: MemoryRegion;
  private readonly landingUsed = new Set<number>();
  private nextIndex = 0;
  private unsignalled = 0;
  private destroyed = false;

  constructor(
    readonly name: string,
    private readonly context: number,
    readonly node: SimNode,
    private readonly random: SeededRandom,
    private readonly world: FlowSenderWorld,
    make: (init: SenderInit) => QueuePair,
  ) {
    const bytes = randomBytes(random, TOTAL_BYTES);
    this.model = new MemoryModel(name, bytes);
    this.base = BigInt(random.u32()) * 4096n;
    const { pd, cq } = node;
    const register = (at: number, length: number, access: number): MemoryRegion =>
      pd.registerMemory(bytes.subarray(at, at + length), access, this.base + BigInt(at));
    this.source = register(SOURCE, SOURCE_BYTES, 0);
    this.landingMr = register(LANDING, LANDING_SLOTS * FLOW_BYTES, Access.LOCAL_WRITE);
    this.checker = new SendChecker(name);
    this.qp = make({
      pd,
      sendCq: cq,
      maxSendWr: QUEUE_DEPTH,
      maxReceiveWr: 0,
      maxSendSge: 2,
      maxReceiveSge: 0,
      maxInlineBytes: MAX_INLINE,
      context,
    });
    node.takers.set(context, this);
  }

  get room(): number {
    return QUEUE_DEPTH - this.checker.outstanding.length;
  }

  get next(): number {
    return this.nextIndex;
  }

  get broken(): boolean {
    return this.qp.state === QpState.ERR;
  }

  /** Random segments of source memory and what they carry. */
  outgoing(length: number): Pick<SendRequest, 'length' | 'segments' | 'payload'> {
    const { random } = this;
    const offset = SOURCE + random.below(SOURCE_BYTES - length + 1);
    const { lkey } = this.source;
    const cut = random.percent(50) ? length : random.below(length + 1);
    const segments: Segment[] = [
      { offset, length: cut, lkey },
      { offset: offset + cut, length: length - cut, lkey },
    ];
    return { length, segments, payload: gather(this.model.bytes, segments) };
  }

  /** Where an answer goes, and what it must bring; nothing while all slots are in use. */
  landing(
    expected: Uint8Array,
  ): Pick<SendRequest, 'segments' | 'local' | 'landingSlot'> | undefined {
    if (this.landingUsed.size === LANDING_SLOTS) return undefined;
    let slot = this.random.below(LANDING_SLOTS);
    while (this.landingUsed.has(slot)) slot = (slot + 1) % LANDING_SLOTS;
    const offset = LANDING + slot * FLOW_BYTES;
    const segments = [{ offset, length: expected.length, lkey: this.landingMr.lkey }];
    return { segments, local: [{ offset, data: expected }], landingSlot: slot };
  }

  /** Adds a request, without ringing. */
  post(draft: FlowDraft): SendRequest {
    const request: SendRequest = {
      segments: [],
      payload: new Uint8Array(0),
      remoteAddress: 0n,
      rkey: 0,
      immediate: 0,
      compareAdd: 0n,
      swap: 0n,
      remote: [],
      local: [],
      readsSlot: -1,
      landingSlot: -1,
      plan: 'ok',
      ...draft,
      index: this.nextIndex,
      cookie: this.nextIndex * 2 + 2,
      flags: (draft.flags ?? 0) | this.flags(draft.opcode, draft.length),
    };
    writeSend(this.qp, this.base, request);
    this.nextIndex += 1;
    this.checker.post(request);
    for (const effect of request.local) this.model.begin(effect);
    if (request.landingSlot >= 0) this.landingUsed.add(request.landingSlot);
    return request;
  }

  /** A signalled request behind unsignalled ones, whose end would not be seen otherwise. */
  postMarker(draft: Partial<SendRequest>): void {
    if (this.unsignalled === 0 || this.room === 0) return;
    this.unsignalled = QUEUE_DEPTH;
    this.post({ ...draft, opcode: WrOpcode.RDMA_WRITE, length: 0 });
    this.qp.ringSendDoorbell();
  }

  take(completion: Completion): void {
    const what = `${this.name}: completion of send ${completion.wqeIndex}`;
    if (this.destroyed) throw new Violation(`${what} after its end`);
    if (completion.qpn !== this.qp.qpn) throw new Violation(`${what} names ${completion.qpn}`);
    const ended = this.checker.complete(completion, this.world.sendWorld());
    for (const { request, status } of ended) {
      this.landingUsed.delete(request.landingSlot);
      if (status === WcStatus.SUCCESS) this.succeed(request, what);
    }
    const { status } = completion;
    if (status === WcStatus.SUCCESS || status === WcStatus.WR_FLUSH_ERR) return;
    this.world.onFailed(`send ${completion.wqeIndex} ${nameOf(WcStatus, status)}`);
  }

  /** In ERR, with all completions read: what is left has succeeded without a word. */
  checkEnd(): void {
    for (const request of this.checker.endSilently()) this.succeed(request, `${this.name}: end`);
    this.model.verify(`${this.name}: end`);
    this.model.settle();
  }

  destroy(): void {
    this.destroyed = true;
    this.node.takers.delete(this.context);
    this.qp.destroy();
    this.source.destroy();
    this.landingMr.destroy();
  }

  private succeed(request: SendRequest, what: string): void {
    for (const effect of request.local) this.model.commit(effect, what);
    this.world.onSucceeded(request, what);
  }

  private flags(opcode: WrOpcode, length: number): number {
    const { random } = this;
    const signalled = this.unsignalled + 1 >= QUEUE_DEPTH / 2 || random.percent(60);
    this.unsignalled = signalled ? 0 : this.unsignalled + 1;
    const outgoing = opcode <= WrOpcode.SEND_WITH_IMM;
    return (
      (signalled ? WrFlags.SIGNALED : 0) |
      (outgoing && length <= MAX_INLINE && random.percent(30) ? WrFlags.INLINE : 0) |
      (consumesReceive(opcode) && random.percent(30) ? WrFlags.SOLICITED : 0)
    );
  }
}

export function randomBytes(random: SeededRandom, length: number): Uint8Array {
  const words = new Uint32Array(Math.ceil(length / 4));
  for (let i = 0; i < words.length; i++) words[i] = random.u32();
  return new Uint8Array(words.buffer, 0, length);
}

/** Zero, short, about whole packets, or anything. */
export function flowLength(random: SeededRandom, mtuBytes: number, most: number): number {
  const kind = random.below(10);
  if (kind === 0) return 0;
  if (kind < 4) return random.between(1, Math.min(most, 64));
  if (kind < 7) return Math.min(most, mtuBytes * random.between(1, 3) + random.between(-2, 2));
  return random.between(1, most);
}

/** What a WRITE of these bytes does; nothing, if there are none. */
export function effectOf(offset: number, data: Uint8Array): Effect[] {
  return data.length > 0 ? [{ offset, data }] : [];
}
