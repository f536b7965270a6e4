/**
 * A device whose rings are real and whose wire is the test: requests are taken from the rings as a
 * provider would, and completed as the test says.
 */
import {
  AsyncEventType,
  CQE,
  CQE_BYTES,
  type CompletionQueue,
  type CompletionQueueInit,
  type Device,
  type DeviceCapability,
  type DeviceAttributes,
  gidFromIp,
  type MemoryRegion,
  type MemoryWindow,
  type ProtectionDomain,
  type QueuePairInit,
  Ring,
  ringEntries,
  type SharedReceiveQueueInit,
  SpiError,
  WcFlags,
} from '../../core/spi/index.js';
import { ScriptedQueuePair } from './scripted-queue-pair.js';
import { FakeSharedReceiveQueue } from './fake-shared-queue.js';
import type { FakeWorld } from './fake-world.js';

const ATTRIBUTES: DeviceAttributes = {
  nodeGuid: 0x1122334455667788n,
  vendorId: 1,
  vendorPartId: 2,
  hardwareVersion: 3,
  firmwareVersion: '4.5',
  portNumber: 1,
  activeMtuBytes: 1024,
  maxMessageBytes: 2 ** 31,
  maxQueuePairs: 100,
  maxQueuePairWr: 1024,
  maxSge: 8,
  maxInlineBytes: 0,
  maxCompletionQueues: 100,
  maxCompletionQueueEntries: 4096,
  maxMemoryRegions: 100,
  maxMemoryRegionBytes: 2 ** 40,
  maxMemoryWindows: 100,
  maxProtectionDomains: 10,
  maxSharedReceiveQueues: 100,
  maxSharedReceiveQueueWr: 1024,
  maxResponderResources: 16,
  maxInitiatorDepth: 16,
  localAckDelay: 15,
};

export class FakeDevice implements Device {
  readonly name = 'fake0';
  readonly attributes = ATTRIBUTES;
  readonly capabilities = new Set<DeviceCapability>([
    'rc',
    'shared-receive-queue',
    'memory-window',
  ]);
  readonly gids = [gidFromIp('192.0.2.1')];
  readonly queuePairs: ScriptedQueuePair[] = [];
  readonly completionQueues: FakeCompletionQueue[] = [];
  readonly regions: FakeRegion[] = [];
  readonly sharedQueues: FakeSharedReceiveQueue[] = [];
  /** What was ended, in order. */
  readonly ended: string[] = [];
  closed = 0;
  /** Where in a page this device thinks all memory to begin. */
  pageOffset = 0n;
  private nextKey = 0x100;

  constructor(readonly world: FakeWorld) {}

  createProtectionDomain(): ProtectionDomain {
    return {
      registerMemory: (memory, access, iova = 0x7000n + this.pageOffset) => {
        if (this.pageOffset !== 0n && iova % 4096n === 0n) {
          throw new SpiError('EINVAL', 'address and memory must agree within a page');
        }
        const region = new FakeRegion(this, memory, access, iova, this.nextKey++);
        this.regions.push(region);
        return region;
      },
      destroy: () => void this.ended.push('pd'),
    };
  }

  allocate(lengthBytes: number): ArrayBuffer {
    return new ArrayBuffer(lengthBytes);
  }

  createCompletionQueue(init: CompletionQueueInit): FakeCompletionQueue {
    const cq = new FakeCompletionQueue(this, init);
    this.completionQueues.push(cq);
    return cq;
  }

  createQueuePair(init: QueuePairInit): ScriptedQueuePair {
    const qp = new ScriptedQueuePair(this, init, 0x10 + this.queuePairs.length);
    this.queuePairs.push(qp);
    return qp;
  }

  createMemoryWindow(): MemoryWindow {
    const handle = this.nextKey++;
    const destroy = (): void => void this.ended.push('mw');
    return { handle, rkey: handle << 8, destroy };
  }

  createSharedReceiveQueue(init: SharedReceiveQueueInit): FakeSharedReceiveQueue {
    const srq = new FakeSharedReceiveQueue(init, this.ended);
    this.sharedQueues.push(srq);
    return srq;
  }

  createAddressHandle(): never {
    throw new SpiError('EOPNOTSUPP', 'no datagrams here');
  }

  deviceEventHandler: (event: AsyncEventType) => void = () => undefined;

  setEventHandler(handler: (event: AsyncEventType) => void): void {
    this.deviceEventHandler = handler;
  }

  setReportHandler(): void {
    // No network, no hints.
  }

  progress(): boolean {
    return false;
  }

  async close(): Promise<void> {
    this.closed++;
    this.ended.push('device');
  }

  /** The newest queue pair. */
  get qp(): ScriptedQueuePair {
    const qp = this.queuePairs.at(-1);
    if (qp === undefined) throw new Error('no queue pair was made');
    return qp;
  }
}

export class FakeRegion implements MemoryRegion {
  destroyed = false;

  constructor(
    private readonly device: FakeDevice,
    readonly memory: ArrayBufferView,
    readonly access: number,
    readonly iova: bigint,
    readonly lkey: number,
  ) {}

  get rkey(): number {
    return this.lkey + 0x10000;
  }

  get lengthBytes(): number {
    return this.memory.byteLength;
  }

  destroy(): void {
    this.destroyed = true;
    this.device.ended.push('mr');
  }
}

export class FakeCompletionQueue implements CompletionQueue {
  ring: Ring;
  armed: 'no' | 'solicited' | 'next' = 'no';
  arms = 0;
  armFails = false;
  destroyed = false;

  constructor(
    private readonly device: FakeDevice,
    private readonly init: CompletionQueueInit,
  ) {
    this.ring = Ring.allocate(ringEntries(init.minEntries), CQE_BYTES);
  }

  poll(): number {
    return this.ring.length;
  }

  arm(solicitedOnly: boolean): void {
    if (this.armFails) throw new SpiError('EIO', 'cannot arm');
    this.arms++;
    if (this.armed !== 'next') this.armed = solicitedOnly ? 'solicited' : 'next';
  }

  setPolling(): void {
    // Nothing polls here.
  }

  resize(minEntries: number): void {
    const old = this.ring;
    const ring = Ring.allocate(ringEntries(minEntries), CQE_BYTES);
    if (old.length > ring.entries) throw new SpiError('EINVAL', 'completions do not fit');
    for (let i = old.consumer; i !== old.producer; i = (i + 1) >>> 0) {
      const from = old.wordOf(i);
      ring.words.set(old.words.subarray(from, from + CQE.WORDS), ring.wordOf(ring.producer));
      ring.producer = ring.producer + 1;
    }
    this.ring = ring;
  }

  destroy(): void {
    this.destroyed = true;
    this.device.ended.push('cq');
  }

  /** As if a completion had found the ring full: it is lost. */
  overrun(): void {
    this.device.world.defer(() => this.init.onEvent(AsyncEventType.CQ_ERR));
  }

  push(words: Readonly<Record<number, number>>): void {
    const { ring } = this;
    if (ring.length === ring.entries) {
      this.overrun();
      return;
    }
    const at = ring.wordOf(ring.producer);
    ring.words.fill(0, at, at + CQE.WORDS);
    for (const [word, value] of Object.entries(words)) ring.words[at + Number(word)] = value;
    ring.producer = ring.producer + 1;
    const control = words[CQE.CONTROL] ?? 0;
    const solicited = (control & 0xff) !== 0 || ((control >>> 16) & WcFlags.SOLICITED) !== 0;
    if (this.armed === 'next' || (this.armed === 'solicited' && solicited)) {
      this.armed = 'no';
      this.device.world.defer(this.init.onNotify);
    }
  }
}
