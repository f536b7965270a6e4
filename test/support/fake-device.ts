/**
 * A device whose rings are real and whose wire is the test: requests are taken from the rings as a
 * provider would, and completed as the test says.
 */
import {
  type AsyncEventType,
  CQE,
  CQE_BYTES,
  type CompletionQueue,
  type CompletionQueueInit,
  type Device,
  type DeviceAttributes,
  gidFromIp,
  type MemoryRegion,
  type ProtectionDomain,
  QpState,
  type QueuePair,
  type QueuePairAttributes,
  type QueuePairInit,
  Ring,
  RQE,
  ringEntries,
  rqeBytes,
  SGE,
  SpiError,
  SQE,
  sqeBytes,
  WcFlags,
  WcOpcode,
  WcStatus,
  WrFlags,
  WrOpcode,
} from '../../core/spi/index.js';
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
  maxMemoryWindows: 0,
  maxProtectionDomains: 10,
  maxSharedReceiveQueues: 0,
  maxSharedReceiveQueueWr: 0,
  maxResponderResources: 16,
  maxInitiatorDepth: 16,
  localAckDelay: 15,
};

export class FakeDevice implements Device {
  readonly name = 'fake0';
  readonly attributes = ATTRIBUTES;
  readonly capabilities = new Set(['rc'] as const);
  readonly gids = [gidFromIp('192.0.2.1')];
  readonly queuePairs: FakeQueuePair[] = [];
  readonly completionQueues: FakeCompletionQueue[] = [];
  readonly regions: FakeRegion[] = [];
  /** What was ended, in order. */
  readonly ended: string[] = [];
  closed = 0;
  private nextKey = 0x100;

  constructor(readonly world: FakeWorld) {}

  createProtectionDomain(): ProtectionDomain {
    return {
      registerMemory: (memory, access, iova) => {
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

  createQueuePair(init: QueuePairInit): FakeQueuePair {
    const qp = new FakeQueuePair(this, init, 0x10 + this.queuePairs.length);
    this.queuePairs.push(qp);
    return qp;
  }

  createAddressHandle(): never {
    throw new SpiError('EOPNOTSUPP', 'no datagrams here');
  }

  deviceEventHandler: (event: AsyncEventType) => void = () => undefined;

  setEventHandler(handler: (event: AsyncEventType) => void): void {
    this.deviceEventHandler = handler;
  }

  setUnreachableHandler(): void {
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
  get qp(): FakeQueuePair {
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

  push(words: Readonly<Record<number, number>>): void {
    const { ring } = this;
    if (ring.length === ring.entries) {
      this.device.world.defer(() => this.init.onEvent(0));
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

/** A request or receive as the provider reads it from the ring. */
export interface FakeWork {
  readonly index: number;
  readonly opcode: number;
  readonly flags: number;
  readonly cookie: number;
  readonly remoteAddress: bigint;
  readonly rkey: number;
  readonly segments: readonly { address: bigint; length: number; lkey: number }[];
}

const WC_OF: Readonly<Record<number, number>> = {
  [WrOpcode.SEND]: WcOpcode.SEND,
  [WrOpcode.RDMA_WRITE]: WcOpcode.RDMA_WRITE,
  [WrOpcode.RDMA_READ]: WcOpcode.RDMA_READ,
};

export class FakeQueuePair implements QueuePair {
  readonly sendRing: Ring;
  readonly receiveRing: Ring;
  state: QpState = QpState.RESET;
  eventHandler;
  sendDoorbells = 0;
  receiveDoorbells = 0;
  destroyed = false;
  readonly modifications: QueuePairAttributes[] = [];
  /** Entries with an end: index of the next one without. */
  private sendsEnded = 0;
  private receivesEnded = 0;

  constructor(
    private readonly device: FakeDevice,
    readonly init: QueuePairInit,
    readonly qpn: number,
  ) {
    this.sendRing = Ring.allocate(ringEntries(init.maxSendWr), sqeBytes(init.maxSendSge));
    this.receiveRing = Ring.allocate(ringEntries(init.maxReceiveWr), rqeBytes(init.maxReceiveSge));
    this.eventHandler = init.onEvent;
  }

  get type(): QueuePairInit['type'] {
    return this.init.type;
  }

  ringSendDoorbell(): void {
    this.sendDoorbells++;
    if (this.state === QpState.ERR) this.flush();
    else if (this.state !== QpState.RTS) throw new Error(`doorbell in state ${this.state}`);
  }

  ringReceiveDoorbell(): void {
    this.receiveDoorbells++;
    if (this.state === QpState.ERR) this.flush();
  }

  modify(attributes: QueuePairAttributes): void {
    this.modifications.push(attributes);
    if (attributes.state === undefined) return;
    this.state = attributes.state;
    if (this.state === QpState.ERR) this.flush();
  }

  query(): QueuePairAttributes {
    return { state: this.state };
  }

  flightRecord(): readonly string[] {
    return ['RTS -> ERR'];
  }

  destroy(): void {
    this.destroyed = true;
    this.device.ended.push('qp');
  }

  /** Requests that the doorbell has shown and that have no end yet. */
  get work(): FakeWork[] {
    const list: FakeWork[] = [];
    for (let i = this.sendsEnded; i !== this.sendRing.producer; i = (i + 1) >>> 0) {
      list.push(this.readRequest(i));
    }
    return list;
  }

  get receives(): FakeWork[] {
    const list: FakeWork[] = [];
    for (let i = this.receivesEnded; i !== this.receiveRing.producer; i = (i + 1) >>> 0) {
      list.push(this.readReceive(i));
    }
    return list;
  }

  /** Ends the oldest request; a success of an unsignalled one leaves no completion. */
  completeSend(status: number = WcStatus.SUCCESS): void {
    const request = this.readRequest(this.sendsEnded);
    this.sendsEnded = (this.sendsEnded + 1) >>> 0;
    if (status === WcStatus.SUCCESS && (request.flags & WrFlags.SIGNALED) === 0) return;
    const at = this.sendRing.wordOf(request.index);
    const length = request.segments.reduce((sum, segment) => sum + segment.length, 0);
    (this.init.sendCq as FakeCompletionQueue).push({
      [CQE.CONTROL]: status | ((WC_OF[request.opcode] ?? 0) << 8),
      [CQE.QPN]: this.qpn,
      [CQE.COOKIE_LO]: this.sendRing.words[at + SQE.COOKIE_LO] ?? 0,
      [CQE.COOKIE_HI]: this.sendRing.words[at + SQE.COOKIE_HI] ?? 0,
      [CQE.BYTE_LENGTH]: length,
      [CQE.WQE_INDEX]: request.index,
      [CQE.QP_CONTEXT]: this.init.context,
    });
    if (status !== WcStatus.SUCCESS && status !== WcStatus.WR_FLUSH_ERR) this.fail();
  }

  completeReceive(lengthBytes: number, status: number = WcStatus.SUCCESS, wcFlags = 0): void {
    const index = this.receivesEnded;
    if (index === this.receiveRing.producer) throw new Error('no receive is posted');
    this.receivesEnded = (index + 1) >>> 0;
    const at = this.receiveRing.wordOf(index);
    (this.init.receiveCq as FakeCompletionQueue).push({
      [CQE.CONTROL]: status | (WcOpcode.RECV << 8) | (wcFlags << 16),
      [CQE.QPN]: this.qpn,
      [CQE.COOKIE_LO]: this.receiveRing.words[at + RQE.COOKIE_LO] ?? 0,
      [CQE.COOKIE_HI]: this.receiveRing.words[at + RQE.COOKIE_HI] ?? 0,
      [CQE.BYTE_LENGTH]: lengthBytes,
      [CQE.WQE_INDEX]: index,
      [CQE.QP_CONTEXT]: this.init.context,
    });
    if (status !== WcStatus.SUCCESS && status !== WcStatus.WR_FLUSH_ERR) this.fail();
  }

  private fail(): void {
    this.state = QpState.ERR;
    this.flush();
  }

  private flush(): void {
    while (this.sendsEnded !== this.sendRing.producer) this.completeSend(WcStatus.WR_FLUSH_ERR);
    while (this.receivesEnded !== this.receiveRing.producer) {
      this.completeReceive(0, WcStatus.WR_FLUSH_ERR);
    }
  }

  private readRequest(index: number): FakeWork {
    const { words } = this.sendRing;
    const at = this.sendRing.wordOf(index);
    const control = words[at + SQE.CONTROL] ?? 0;
    return {
      index,
      opcode: control & 0xff,
      flags: (control >>> 8) & 0xff,
      cookie: u64(words, at + SQE.COOKIE_LO, Number),
      remoteAddress: u64(words, at + SQE.REMOTE_ADDRESS_LO, BigInt),
      rkey: words[at + SQE.RKEY] ?? 0,
      segments: readSegments(words, at + SQE.SEGMENTS, (control >>> 16) & 0xff),
    };
  }

  private readReceive(index: number): FakeWork {
    const { words } = this.receiveRing;
    const at = this.receiveRing.wordOf(index);
    return {
      index,
      opcode: 0,
      flags: words[at + RQE.FLAGS] ?? 0,
      cookie: u64(words, at + RQE.COOKIE_LO, Number),
      remoteAddress: 0n,
      rkey: 0,
      segments: readSegments(words, at + RQE.SEGMENTS, words[at + RQE.NUM_SGE] ?? 0),
    };
  }
}

function u64<T>(words: Uint32Array, at: number, make: (value: bigint) => T): T {
  return make((BigInt(words[at + 1] ?? 0) << 32n) | BigInt(words[at] ?? 0));
}

function readSegments(words: Uint32Array, at: number, count: number): FakeWork['segments'] {
  return Array.from({ length: count }, (_, i) => {
    const first = at + i * SGE.WORDS;
    return {
      address: u64(words, first + SGE.ADDRESS_LO, BigInt),
      length: words[first + SGE.LENGTH] ?? 0,
      lkey: words[first + SGE.LKEY] ?? 0,
    };
  });
}
