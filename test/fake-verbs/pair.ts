/** Two connected queue pairs of one fake device, with memory: where the tests start from. */
import type { MemoryRegion, QueuePairInit, SharedReceiveQueue } from '../../core/spi/device.js';
import { Access, type AsyncEventType, QpState, QpType } from '../../core/spi/ib.js';
import type { VerbsCompletionQueue } from './completion-queue.js';
import { VerbsDevice, type VerbsProtectionDomain } from './device.js';
import { check, Mode } from './library.js';
import { connect, type VerbsQueuePair } from './queue-pair.js';
import type { Segment } from './work.js';

export interface PairOptions {
  readonly mode?: (typeof Mode)[keyof typeof Mode];
  readonly maxSendWr?: number;
  readonly maxReceiveWr?: number;
  readonly cqEntries?: number;
  /** The second queue pair receives from a shared queue of this size. */
  readonly srqWr?: number;
  /** How far the queue pairs are taken; default RTS. */
  readonly until?: QpState;
}

export const CONTEXT_A = 0xa0000001;
export const CONTEXT_B = 0xb0000002;
const MEMORY_BYTES = 65536;
const EVERY_RIGHT =
  Access.LOCAL_WRITE |
  Access.REMOTE_WRITE |
  Access.REMOTE_READ |
  Access.REMOTE_ATOMIC |
  Access.MW_BIND;

type Role = 'send A' | 'send B' | 'receive A' | 'receive B';

export class Pair {
  readonly device = new VerbsDevice();
  readonly pd: VerbsProtectionDomain;
  readonly memory = new Uint8Array(MEMORY_BYTES);
  readonly region: MemoryRegion;
  readonly a: VerbsQueuePair;
  readonly b: VerbsQueuePair;
  readonly srq: SharedReceiveQueue | undefined;
  /** Notifications in order; a test may put a function in front. */
  readonly notified: Role[] = [];
  onNotify: (role: Role) => void = (role) => void this.notified.push(role);
  readonly events: [where: string, type: AsyncEventType][] = [];
  readonly queues: Readonly<Record<Role, VerbsCompletionQueue>>;

  constructor(readonly options: PairOptions = {}) {
    check('mode', this.device.library.setMode(options.mode ?? Mode.IMMEDIATE));
    this.pd = this.device.createProtectionDomain();
    this.region = this.pd.registerMemory(this.memory, EVERY_RIGHT);
    const queue = (role: Role): VerbsCompletionQueue =>
      this.device.createCompletionQueue({
        minEntries: options.cqEntries ?? 64,
        onNotify: () => this.onNotify(role),
        onEvent: (type) => this.events.push([role, type]),
      });
    this.queues = {
      'send A': queue('send A'),
      'receive A': queue('receive A'),
      'send B': queue('send B'),
      'receive B': queue('receive B'),
    };
    if (options.srqWr !== undefined) {
      this.srq = this.device.createSharedReceiveQueue({
        pd: this.pd,
        maxWr: options.srqWr,
        maxSge: 4,
        onEvent: (type) => this.events.push(['srq', type]),
      });
    }
    this.a = this.device.createQueuePair(this.initOf('A', undefined));
    this.b = this.device.createQueuePair(this.initOf('B', this.srq));
    connect(this.a, this.b, options.until ?? QpState.RTS);
    connect(this.b, this.a, options.until ?? QpState.RTS);
  }

  /** What a queue pair of this pair is made from; a test may want a third. */
  initOf(side: 'A' | 'B', srq: SharedReceiveQueue | undefined): QueuePairInit {
    return {
      type: QpType.RC,
      pd: this.pd,
      sendCq: this.queues[`send ${side}`],
      receiveCq: this.queues[`receive ${side}`],
      ...(srq && { srq }),
      maxSendWr: this.options.maxSendWr ?? 16,
      maxReceiveWr: this.options.maxReceiveWr ?? 16,
      maxSendSge: 4,
      maxReceiveSge: 4,
      maxInlineBytes: 64,
      context: side === 'A' ? CONTEXT_A : CONTEXT_B,
      onEvent: (type) => this.events.push([side, type]),
    };
  }

  /** A segment of the registered memory. */
  at(offset: number, length: number): Segment {
    return { address: this.region.iova + BigInt(offset), length, lkey: this.region.lkey };
  }

  remote(offset: number): { address: bigint; rkey: number } {
    return { address: this.region.iova + BigInt(offset), rkey: this.region.rkey };
  }

  /** Carries out at most `limit` requests in manual mode; 0 is all. */
  progress(limit = 0): number {
    return this.device.library.progress(limit);
  }

  async close(): Promise<void> {
    check('mode', this.device.library.setMode(Mode.MANUAL));
    this.a.destroy();
    this.b.destroy();
    this.srq?.destroy();
    for (const queue of Object.values(this.queues)) queue.destroy();
    this.region.destroy();
    this.pd.destroy();
    await this.device.close();
  }
}
