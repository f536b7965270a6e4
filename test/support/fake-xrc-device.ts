/**
 * A device with XRC and nothing else: it knows what lives, refuses what IBTA refuses, and lets a
 * test raise events. Counting is the module's business, so nothing is counted here but children.
 */
import {
  type AsyncEventType,
  type CompletionQueue,
  type Device,
  type DeviceCapability,
  gidFromIp,
  type Logger,
  type ProtectionDomain,
  QpState,
  type QueuePair,
  type QueuePairAttributes,
  type QueuePairInit,
  Ring,
  type SharedReceiveQueue,
  type SharedReceiveQueueInit,
  SpiError,
  checkQpTransition,
  silentLogger,
} from '../../core/spi/index.js';

interface Living {
  readonly kind: 'pd' | 'cq' | 'qp' | 'srq' | 'domain';
}

export class FakeXrcQueuePair implements Living {
  readonly kind = 'qp';
  readonly type;
  readonly sendRing = Ring.allocate(1, 64);
  readonly receiveRing = undefined;
  state: QpState = QpState.RESET;
  attributes: QueuePairAttributes = {};
  destroyed = 0;
  eventHandler;

  constructor(
    private readonly device: FakeXrcDevice,
    readonly init: QueuePairInit,
    readonly qpn: number,
  ) {
    this.type = init.type;
    this.eventHandler = init.onEvent;
  }

  ringSendDoorbell(): void {
    // Nothing leaves here.
  }

  ringReceiveDoorbell(): void {
    throw new Error('no receive queue');
  }

  modify(attributes: QueuePairAttributes): void {
    if (this.device.refuseModify) throw new SpiError('EINVAL', 'the device refuses');
    this.state = checkQpTransition(this.type, this.state, attributes);
    this.attributes = { ...this.attributes, ...attributes };
  }

  query(): Readonly<QueuePairAttributes> {
    return { ...this.attributes, state: this.state };
  }

  flightRecord(): readonly string[] {
    return [];
  }

  destroy(): void {
    this.destroyed += 1;
    this.device.living.delete(this);
  }
}

export class FakeXrcDevice {
  readonly name = 'fake-xrc';
  readonly capabilities = new Set<DeviceCapability>(['xrc', 'shared-receive-queue']);
  readonly living = new Set<Living>();
  readonly queuePairs: FakeXrcQueuePair[] = [];
  refuseModify = false;
  private nextQpn = 0x100;

  /** As the module sees it. */
  get device(): Device {
    return {
      name: this.name,
      capabilities: this.capabilities,
      attributes: { portNumber: 1 },
      createXrcDomain: () => this.living1({ kind: 'domain' }),
      createProtectionDomain: () => this.living1({ kind: 'pd' }) as unknown as ProtectionDomain,
      createCompletionQueue: () => this.living1({ kind: 'cq' }) as unknown as CompletionQueue,
      createSharedReceiveQueue: (init: SharedReceiveQueueInit) =>
        this.living1({ kind: 'srq', init }) as unknown as SharedReceiveQueue,
      createQueuePair: (init: QueuePairInit) => this.createQueuePair(init),
    } as unknown as Device;
  }

  count(kind: Living['kind']): number {
    return [...this.living].filter((object) => object.kind === kind).length;
  }

  find(qpn: number): FakeXrcQueuePair {
    const found = this.queuePairs.find((qp) => qp.qpn === qpn);
    if (!found) throw new Error(`no queue pair ${qpn} was ever made`);
    return found;
  }

  raise(qpn: number, event: AsyncEventType): void {
    this.find(qpn).eventHandler(event);
  }

  private createQueuePair(init: QueuePairInit): QueuePair {
    const qp = new FakeXrcQueuePair(this, init, this.nextQpn++);
    this.living.add(qp);
    this.queuePairs.push(qp);
    return qp;
  }

  private living1<T extends Living>(object: T): T & { destroy(): void } {
    const whole = { ...object, destroy: () => void this.living.delete(whole) };
    this.living.add(whole);
    return whole;
  }
}

/** A logger that keeps what it is told. */
export class Lines {
  readonly lines: string[] = [];
  readonly logger: Logger = {
    ...silentLogger,
    warn: (message) => void this.lines.push(message),
    error: (message) => void this.lines.push(message),
    child: () => this.logger,
  };
}

/** What a target needs at least. */
export function targetAttributes(more: QueuePairAttributes = {}): QueuePairAttributes {
  return {
    accessFlags: 0,
    pkeyIndex: 0,
    portNumber: 1,
    addressVector: { gid: gidFromIp('192.0.2.2'), localGidIndex: 0 },
    pathMtuBytes: 1024,
    destinationQpn: 0x55,
    receivePsn: 7,
    ...more,
  };
}
