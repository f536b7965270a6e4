/** Two connected queue pairs of one fake device, with memory: where the tests start from. */
import type {
  CompletionQueue,
  CompletionQueueInit,
  MemoryRegion,
  ProtectionDomain,
  QueuePair,
  QueuePairInit,
  SharedReceiveQueue,
} from '../../core/spi/device/device.js';
import { Access, type AsyncEventType, QpState, QpType } from '../../core/spi/wire/ib.js';
import { silentLogger } from '../../core/spi/plugin/logger.js';
import { VerbsDevice } from '../../providers/verbs/device.js';
import { check } from '../../providers/verbs/system/errno.js';
import { connect } from './connect.js';
import { FAKE_LIBIBVERBS, fakeVerbs, Mode } from './control.js';
import { loadVerbsAddon, type VerbsAddon } from '../../providers/verbs/addon/native-addon.js';
import type { Segment } from './work.js';

export interface PairOptions {
  /** Of the device; default fake0. */
  readonly name?: string;
  readonly mode?: Mode;
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

/** The provider's addon over the fake. */
export function addonOverFake(): VerbsAddon {
  const addon = loadVerbsAddon();
  const missing = addon.load('verbs', FAKE_LIBIBVERBS);
  if (missing !== undefined) throw new Error(missing);
  return addon;
}

export class Pair {
  readonly fake = fakeVerbs();
  readonly device: VerbsDevice;
  readonly pd: ProtectionDomain;
  /** What handlers threw. */
  readonly thrown: unknown[] = [];
  readonly memory = new Uint8Array(MEMORY_BYTES);
  readonly region: MemoryRegion;
  readonly a: QueuePair;
  readonly b: QueuePair;
  readonly srq: SharedReceiveQueue | undefined;
  /** Notifications in order; a test may put a function in front. */
  readonly notified: Role[] = [];
  onNotify: (role: Role) => void = (role) => void this.notified.push(role);
  readonly events: [where: string, type: AsyncEventType][] = [];
  readonly queues: Readonly<Record<Role, CompletionQueue>>;

  constructor(readonly options: PairOptions = {}) {
    const error = (_: string, fields?: Readonly<Record<string, unknown>>): unknown =>
      this.thrown.push(fields?.['error']);
    const logger = { ...silentLogger, error };
    this.device = new VerbsDevice({
      addon: addonOverFake(),
      name: options.name ?? 'fake0',
      logger,
    });
    this.setMode(options.mode ?? Mode.IMMEDIATE);
    this.pd = this.device.createProtectionDomain();
    this.region = this.pd.registerMemory(this.memory, EVERY_RIGHT);
    const queue = (role: Role): CompletionQueue =>
      this.device.createCompletionQueue(this.cqInitOf(role));
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
    connect(this.device, this.a, this.b, options.until ?? QpState.RTS);
    connect(this.device, this.b, this.a, options.until ?? QpState.RTS);
  }

  /** What a completion queue of this pair is made from. */
  cqInitOf(role: Role): CompletionQueueInit {
    return {
      minEntries: this.options.cqEntries ?? 64,
      onNotify: () => this.onNotify(role),
      onEvent: (type) => this.events.push([role, type]),
    };
  }

  setMode(mode: Mode): void {
    check('mode', this.fake.setMode(mode));
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
    return this.fake.progress(limit);
  }

  async close(): Promise<void> {
    this.fake.clearInjections();
    this.setMode(Mode.MANUAL);
    this.a.destroy();
    this.b.destroy();
    this.srq?.destroy();
    for (const queue of Object.values(this.queues)) queue.destroy();
    this.region.destroy();
    this.pd.destroy();
    await this.device.close();
  }
}
