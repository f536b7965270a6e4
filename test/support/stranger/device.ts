/**
 * A device as a stranger would write it, without the software HCA: reliable connections between
 * objects of one process, worked on in turns of the event loop.
 */
import {
  type AddressHandle,
  type AsyncEventType,
  type Clock,
  type CompletionQueueInit,
  type Device,
  type DeviceAttributes,
  type DeviceCapability,
  type Gid,
  gidFromIp,
  ipFromGid,
  type NetworkReport,
  QpType,
  type QueuePairAttributes,
  type QueuePairInit,
  type Scheduler,
  SpiError,
  type TimerEntry,
  TimerWheel,
  type Timers,
} from 'dapl/spi';
import { StrangerCompletionQueue } from './completion-queue.js';
import { Domain, StrangerMemory } from './memory.js';
import type { Mutant } from './mutants.js';
import { StrangerQueuePair } from './queue-pair.js';

const MAX_WR = 1024;
const MAX_SGE = 8;

/** All devices of the process, by address. */
export const devices = new Map<string, StrangerDevice>();

export class StrangerDevice implements Device, Scheduler {
  readonly name: string;
  readonly capabilities: ReadonlySet<DeviceCapability> = new Set(['rc']);
  readonly gids: readonly Gid[];
  readonly memory: StrangerMemory;
  readonly clock: Clock = { now: () => performance.now() * 1000 };
  readonly timers: Timers;
  readonly attributes: DeviceAttributes = {
    nodeGuid: 1n,
    vendorId: 1,
    vendorPartId: 1,
    hardwareVersion: 1,
    firmwareVersion: '1',
    portNumber: 1,
    activeMtuBytes: 4096,
    maxMessageBytes: 2 ** 31,
    maxQueuePairs: 1000,
    maxQueuePairWr: MAX_WR,
    maxSge: MAX_SGE,
    maxInlineBytes: 64,
    maxCompletionQueues: 1000,
    maxCompletionQueueEntries: 1 << 16,
    maxMemoryRegions: 1000,
    maxMemoryRegionBytes: 2 ** 32,
    maxMemoryWindows: 0,
    maxProtectionDomains: 1000,
    maxSharedReceiveQueues: 0,
    maxSharedReceiveQueueWr: 0,
    maxResponderResources: 4,
    maxInitiatorDepth: 4,
    reportsSolicited: true,
    localAckDelay: 15,
  };
  private readonly wheel: TimerWheel;
  private readonly queuePairs = new Map<number, StrangerQueuePair>();
  private readonly tasks: (() => void)[] = [];
  private handler: (event: AsyncEventType) => void = () => undefined;
  private woken = false;
  private timer: NodeJS.Timeout | undefined;
  private holds = false;
  private nextQpn = 16;
  private closed = false;

  constructor(
    readonly address: string,
    readonly mutant?: Mutant,
  ) {
    this.name = `stranger ${address}`;
    this.gids = [gidFromIp(address)];
    this.memory = new StrangerMemory(mutant);
    this.wheel = new TimerWheel(this.clock.now());
    this.timers = {
      start: (timer: TimerEntry, deadlineUs: number) => {
        this.wheel.start(timer, deadlineUs);
        this.wake();
      },
      stop: (timer: TimerEntry) => this.wheel.stop(timer),
    };
    devices.set(address, this);
  }

  createProtectionDomain(): Domain {
    return new Domain(this.memory);
  }

  allocate(lengthBytes: number): ArrayBuffer {
    return new ArrayBuffer(Math.ceil(lengthBytes / 4096) * 4096);
  }

  createCompletionQueue(init: CompletionQueueInit): StrangerCompletionQueue {
    return new StrangerCompletionQueue(
      init,
      (task) => this.defer(task),
      this.mutant,
      (cq) => {
        for (const qp of this.queuePairs.values()) {
          if (qp.sendCq === cq || qp.receiveCq === cq) qp.toError();
        }
      },
    );
  }

  createQueuePair(init: QueuePairInit): StrangerQueuePair {
    if (init.type !== QpType.RC || init.srq) {
      throw new SpiError('EOPNOTSUPP', `queue pairs of type ${init.type}, or with an SRQ`);
    }
    for (const [name, most] of [
      ['maxSendWr', MAX_WR],
      ['maxReceiveWr', MAX_WR],
      ['maxSendSge', MAX_SGE],
      ['maxReceiveSge', MAX_SGE],
    ] as const) {
      if (init[name] > most) throw new SpiError('EINVAL', `${name} ${init[name]}: ${most} at most`);
    }
    const queues = [init.sendCq, init.receiveCq];
    if (!queues.every((cq) => cq instanceof StrangerCompletionQueue)) {
      throw new SpiError('EINVAL', 'a completion queue of another device');
    }
    this.nextQpn += 1;
    const qp = new StrangerQueuePair(this, this.nextQpn, init);
    this.queuePairs.set(qp.qpn, qp);
    return qp;
  }

  createAddressHandle(): AddressHandle {
    throw new SpiError('EOPNOTSUPP', 'there are no datagrams');
  }

  setEventHandler(handler: (event: AsyncEventType) => void): void {
    this.handler = handler;
  }

  setReportHandler(_handler: (report: NetworkReport) => void): void {
    // Nothing is ever reported.
  }

  progress(): boolean {
    let moved = false;
    for (const qp of [...this.queuePairs.values()]) moved = qp.work() || moved;
    if (this.tasks.length > 0) this.wake();
    return moved;
  }

  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    for (const qp of [...this.queuePairs.values()]) qp.destroy();
    if (devices.get(this.address) === this) devices.delete(this.address);
    clearTimeout(this.timer);
  }

  onDestroyed(qp: StrangerQueuePair): void {
    this.queuePairs.delete(qp.qpn);
  }

  peerOf({ addressVector, destinationQpn }: QueuePairAttributes): StrangerQueuePair | undefined {
    const device = addressVector && devices.get(ipFromGid(addressVector.gid));
    return device?.queuePairs.get(destinationQpn ?? 0);
  }

  defer(task: () => void): void {
    this.tasks.push(task);
    this.wake();
  }

  mayStart(): boolean {
    return true;
  }

  setHold(holds: boolean): void {
    this.holds = holds;
    if (holds) this.wake();
  }

  wake(): void {
    if (this.woken || this.closed) return;
    this.woken = true;
    setImmediate(() => this.pump());
  }

  wakeAt(timeUs: number): void {
    clearTimeout(this.timer);
    const ms = Math.min(Math.max(0, timeUs - this.clock.now()) / 1000, 1000);
    this.timer = setTimeout(() => this.wake(), ms);
    if (!this.holds) this.timer.unref();
  }

  private pump(): void {
    this.woken = false;
    if (this.closed) return;
    this.wheel.advance(this.clock.now());
    // A doorbell at one device may be what a queue pair of another waits for.
    for (const device of devices.values()) if (device.progress() && device !== this) device.wake();
    for (const task of this.tasks.splice(0)) task();
    const nextUs = this.wheel.nextDeadlineUs();
    if (nextUs < Infinity || this.holds) this.wakeAt(Math.min(nextUs, this.clock.now() + 1e6));
  }
}
