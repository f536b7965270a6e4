/**
 * The shared receive queue of a node, with its memory and the checker of both: each slot completes
 * once, for one of the queue pairs that share it, in about the order of submission; memory of slots
 * that are not posted does not change; the limit is told once for each time that it is set.
 */
import {
  Access,
  AsyncEventType,
  type MemoryRegion,
  type SharedReceiveQueueInit,
} from '../../core/spi/index.js';
import type { SeededRandom } from '../../providers/mock/index.js';
import { SoftSharedReceiveQueue } from '../../providers/hca/srq/shared-receive-queue.js';
import { MemoryModel } from './memory-model.js';
import { type ReceiveRequest, writeShared } from './requests.js';
import { type Completion, describe } from './send-checker.js';
import type { SimNode } from './sim-node.js';
import { Violation } from './trace.js';

/** More than any message has. */
const SLOT_BYTES = 8192;
const GUARD_BYTES = 512;
const SLOTS = 24;
const MAX_SGE = 4;
const TOLD_WITHIN_US = 10;

export class SharedReceives {
  readonly srq: SoftSharedReceiveQueue;
  readonly model: MemoryModel;
  readonly base: bigint;
  /** Endpoints that receive from it. */
  users = 0;
  /** Times that the limit was reached. */
  told = 0;
  private readonly region: MemoryRegion;
  /** By slot, in the order of submission. */
  private readonly outstanding = new Map<number, ReceiveRequest>();
  private cookie = 1;
  private maxWr: number;
  private limit = 0;
  private destroyed = false;

  constructor(
    private readonly node: SimNode,
    private readonly random: SeededRandom,
    guard: (handler: () => void) => void,
    private readonly after: (us: number, task: () => void) => void,
    { pd, xrc }: Pick<SharedReceiveQueueInit, 'pd' | 'xrc'> = { pd: node.pd },
  ) {
    const { node: mock, address } = node;
    this.base = BigInt(random.u32()) * 65536n;
    const bytes = new Uint8Array(GUARD_BYTES + SLOTS * (SLOT_BYTES + GUARD_BYTES));
    this.model = new MemoryModel(`${address} SRQ`, bytes);
    this.region = pd.registerMemory(bytes, Access.LOCAL_WRITE, this.base);
    this.maxWr = random.between(4, SLOTS);
    const srq = mock.device.createSharedReceiveQueue({
      pd,
      maxWr: this.maxWr,
      maxSge: MAX_SGE,
      onEvent: (event) => guard(() => this.onEvent(event)),
      ...(xrc && { xrc }),
    });
    if (!(srq instanceof SoftSharedReceiveQueue)) throw new Error('an SRQ of another provider');
    this.srq = srq;
  }

  get room(): number {
    return this.maxWr - this.outstanding.size;
  }

  /** Posts a burst with one doorbell. */
  post(most: number): void {
    const count = Math.min(most, this.room);
    for (let i = 0; i < count; i++) this.postOne();
    if (count > 0) this.srq.ringDoorbell();
  }

  /** Sets the limit, or changes the size. */
  meddle(): void {
    const { random, srq } = this;
    if (random.percent(50)) {
      this.limit = random.below(this.maxWr + 1);
      srq.setLimit(this.limit);
      this.expectLimit();
      return;
    }
    this.maxWr = Math.min(SLOTS, random.between(Math.max(1, this.outstanding.size), SLOTS));
    srq.resize(this.maxWr);
  }

  /** The receive that a completion ends. */
  take(completion: Completion, name: string): ReceiveRequest {
    const what = describe(`${name} shared receive`, completion);
    const { wqeIndex: slot, cookie, srqn } = completion;
    const receive = this.outstanding.get(slot);
    if (srqn !== this.srq.srqn) throw new Violation(`${what}: it names SRQ ${srqn}`);
    if (!receive) throw new Violation(`${what}: slot ${slot} is not posted`);
    if (receive.cookie !== cookie) throw new Violation(`${what}: cookie ${receive.cookie}`);
    const ahead = [...this.outstanding.keys()].indexOf(slot);
    if (ahead > this.users) throw new Violation(`${what}: ${ahead} slots before it are posted`);
    this.outstanding.delete(slot);
    this.expectLimit();
    return receive;
  }

  /** What has been in a slot stays there: messages that never ended may have left something. */
  adopt(receive: ReceiveRequest): void {
    this.model.adopt(offsetOf(receive.slot), SLOT_BYTES);
  }

  verify(what: string): void {
    for (const slot of this.outstanding.keys()) this.model.adopt(offsetOf(slot), SLOT_BYTES);
    this.model.verify(`${what}, ${this.node.address} SRQ`);
  }

  /** All queue pairs are gone: every slot that has not completed waits to be taken. */
  close(): void {
    const { srq } = this;
    this.verify('the end');
    if (srq.available !== this.outstanding.size) {
      const { size } = this.outstanding;
      throw new Violation(`${this.node.address}: ${size} slots posted, ${srq.available} are there`);
    }
    srq.destroy();
    this.destroyed = true;
    this.region.destroy();
  }

  private postOne(): void {
    const { random, srq } = this;
    let slot = random.below(Math.min(SLOTS, srq.ring.slots.entries));
    while (this.outstanding.has(slot)) slot = (slot + 1) % Math.min(SLOTS, srq.ring.slots.entries);
    const cut = random.below(SLOT_BYTES + 1);
    const { lkey } = this.region;
    const offset = offsetOf(slot);
    const request = {
      index: slot,
      cookie: (this.cookie += 2),
      slot,
      segments: [
        { offset, length: cut, lkey },
        { offset: offset + cut, length: SLOT_BYTES - cut, lkey },
      ],
      capacity: SLOT_BYTES,
    };
    writeShared(srq, this.base, request);
    this.outstanding.set(slot, request);
  }

  /** Once fewer are outstanding than the limit, fewer are left: that must have been told. */
  private expectLimit(): void {
    const limit = this.limit;
    if (limit === 0 || this.outstanding.size >= limit || this.node.removed) return;
    this.after(TOLD_WITHIN_US, () => {
      if (this.limit !== limit || this.destroyed || this.outstanding.size >= limit) return;
      throw new Violation(`${this.node.address}: the limit of ${limit} was passed and not told`);
    });
  }

  private onEvent(event: AsyncEventType): void {
    const expected = event === AsyncEventType.SRQ_LIMIT_REACHED && this.limit > 0;
    if (!expected || this.destroyed) {
      throw new Violation(`${this.node.address}: SRQ event ${event}, and nothing explains it`);
    }
    this.limit = 0;
    this.told += 1;
  }
}

function offsetOf(slot: number): number {
  return GUARD_BYTES + slot * (SLOT_BYTES + GUARD_BYTES);
}
