/** The verbs-level contract over one device of libibverbs. */
import { show } from '../../core/spi/checks/index.js';
import { constants } from 'node:os';
import {
  type AddressHandle,
  type AddressVector,
  AsyncEventType,
  type CompletionQueue,
  type CompletionQueueInit,
  type Device,
  type DeviceAttributes,
  type DeviceCapability,
  type FileMapping,
  type Gid,
  type Logger,
  type MemoryWindow,
  type ProtectionDomain,
  type QueuePair,
  type QueuePairInit,
  type SharedReceiveQueue,
  type SharedReceiveQueueInit,
  SpiError,
  type XrcDomainHandle,
  type XrcSharing,
} from '../../core/spi/index.js';
import { mapFile, shareMemory } from '../host/index.js';
import { VerbsCompletionQueue } from './objects/completion-queue.js';
import { capabilitiesOf, deviceAttributesOf, isPortActive } from './objects/device-attributes.js';
import { EventTable } from './objects/event-table.js';
import { OPENED_TARGET, creatorOf, openerOf } from './objects/create-queue-pair.js';
import { CALLS, answered, check, errnoError, made } from './system/errno.js';
import { registrationOutOfMemory } from './system/errors.js';
import { GidTable } from './objects/gid-table.js';
import type { DeviceTime } from './objects/last-receive.js';
import { lockedMemory } from './system/machine.js';
import type { VerbsAddon } from './addon/native-addon.js';
import { ownMemory } from './objects/pinnable.js';
import type { OpenDevice, OpenObject } from './objects/open-device.js';
import { domainOf } from './objects/parents.js';
import { PortGate } from './cm/port-gate.js';
import {
  VerbsAddressHandle,
  VerbsMemoryWindow,
  VerbsProtectionDomain,
} from './objects/protection-domain.js';
import { VerbsQueuePair } from './objects/queue-pair.js';
import { VerbsSharedReceiveQueue } from './objects/shared-receive-queue.js';
import { readSysfsCounters } from './system/sysfs-counters.js';
import { VerbsXrcDomain } from './objects/xrc-domain.js';

const { EINVAL } = constants.errno;
const RELEASES = new Set<AsyncEventType>([AsyncEventType.PORT_ACTIVE, AsyncEventType.DEVICE_FATAL]);

export interface VerbsDeviceOptions {
  readonly addon: VerbsAddon;
  /** The name, as listed by `ibv_devices`. */
  readonly name: string;
  readonly portNumber?: number;
  /** Place in the port's table of the GID that is the default source; absent: the best one. */
  readonly gidIndex?: number;
  /** Wait method of completion queues with 'event'; default 'event'. */
  readonly polling?: 'event' | 'adaptive';
  readonly logger: Logger;
  /** Runs a handler: in the driver's pump. Absent: at once. What it throws is caught here. */
  readonly pump?: (handler: () => void) => void;
  /** For what a device does not say in time; absent: nothing is said in its place. */
  readonly time?: DeviceTime;
  /** The provider's own end. */
  readonly onClosed?: () => void;
}

/** @throws SpiError('ENODEV') no such device; or what opening it met */
export class VerbsDevice implements Device, OpenDevice {
  readonly name: string;
  readonly addon: VerbsAddon;
  readonly number: number;
  readonly attributes: DeviceAttributes;
  readonly capabilities: ReadonlySet<DeviceCapability>;
  readonly logger: Logger;
  readonly polling: 'event' | 'adaptive';
  readonly time: DeviceTime | undefined;
  /** For messages of the CM. */
  readonly gate: PortGate;
  /** Everything that is there, parents before children. */
  readonly objects = new Set<OpenObject>();
  readonly events = new EventTable();
  /** Bytes of all regions. */
  registeredBytes = 0;
  /** The kernel has taken it away. */
  gone = false;
  private readonly gidTable: GidTable;
  private readonly pump: (handler: () => void) => void;
  private readonly onClosed: () => void;
  private eventHandler: (event: AsyncEventType) => void = () => undefined;
  private closing: Promise<void> | undefined;

  constructor(options: VerbsDeviceOptions) {
    const {
      addon,
      name,
      portNumber = 1,
      gidIndex,
      logger,
      pump = (handler) => handler(),
      onClosed = () => undefined,
    } = options;
    this.addon = addon;
    this.name = name;
    this.logger = logger;
    this.polling = options.polling ?? 'event';
    this.time = options.time;
    this.pump = pump;
    this.onClosed = onClosed;
    const number = addon.openDevice(
      name,
      (cq) => this.notify(cq),
      (type, object, call) => this.deliver(type as AsyncEventType, object, call),
    );
    this.number = made(CALLS.open, number, name);
    this.gate = new PortGate(() => isPortActive(addon.queryPort(this.number, portNumber)));
    try {
      const device = answered('ibv_query_device', addon.queryDevice(this.number), name);
      const where = `port ${portNumber} of ${name}`;
      const port = answered('ibv_query_port', addon.queryPort(this.number, portNumber), where);
      this.gidTable = new GidTable(addon, this.number, portNumber, port, gidIndex);
      this.attributes = deviceAttributesOf(device, port, portNumber);
      this.capabilities = capabilitiesOf(device);
    } catch (error) {
      addon.closeDevice(this.number, 1);
      throw error;
    }
  }

  get gids(): readonly Gid[] {
    return this.gidTable.gids;
  }

  /** Place in the port's table of a GID of `gids`. @throws SpiError('EINVAL') */
  hardwareGidIndex(localGidIndex: number): number {
    return this.gidTable.hardwareIndex(localGidIndex);
  }

  /** Place in `gids` of an entry of the port's table; 0 if it is none. */
  localGidIndex(hardwareIndex: number): number {
    return this.gidTable.localIndex(hardwareIndex);
  }

  createProtectionDomain(): ProtectionDomain {
    this.checkOpen();
    return new VerbsProtectionDomain(this);
  }

  allocate(lengthBytes: number): ArrayBuffer {
    if (lengthBytes === 0) return new ArrayBuffer(0);
    const memory = this.addon.allocate(lengthBytes);
    return ownMemory(answered('mmap', memory, `${lengthBytes} bytes`));
  }

  mapFile(file: FileMapping): Uint8Array {
    const mapped = mapFile(this.addon, file);
    ownMemory(mapped.buffer);
    return mapped;
  }

  shareMemory(name: string, lengthBytes: number): ArrayBuffer {
    return ownMemory(shareMemory(this.addon, name, lengthBytes));
  }

  createCompletionQueue(init: CompletionQueueInit): CompletionQueue {
    this.checkOpen();
    return new VerbsCompletionQueue(this, init);
  }

  createQueuePair(init: QueuePairInit): QueuePair {
    this.checkOpen();
    return new VerbsQueuePair(this, init, creatorOf(this, init));
  }

  createSharedReceiveQueue(init: SharedReceiveQueueInit): SharedReceiveQueue {
    this.checkOpen();
    return new VerbsSharedReceiveQueue(this, init);
  }

  createXrcDomain(sharing?: XrcSharing): XrcDomainHandle {
    this.checkOpen();
    if (!this.capabilities.has('xrc')) {
      throw new SpiError('EOPNOTSUPP', `device ${this.name} knows no XRC`);
    }
    const domain: VerbsXrcDomain = new VerbsXrcDomain(this, sharing, (qpn, onEvent) => {
      domain.checkUsable(this);
      return new VerbsQueuePair(this, { ...OPENED_TARGET, onEvent }, openerOf(domain, qpn));
    });
    return domain;
  }

  createMemoryWindow(pd: ProtectionDomain, type: 1 | 2): MemoryWindow {
    this.checkOpen();
    if (type !== 1 && type !== 2) {
      throw new SpiError('EINVAL', `memory window type ${show(type)}`);
    }
    return new VerbsMemoryWindow(domainOf(this, pd), type);
  }

  createAddressHandle(pd: ProtectionDomain, attributes: AddressVector): AddressHandle {
    this.checkOpen();
    return new VerbsAddressHandle(domainOf(this, pd), attributes);
  }

  setEventHandler(handler: (event: AsyncEventType) => void): void {
    this.eventHandler = handler;
  }

  /** Does nothing: verbs get no reports of unreachable destinations, and the CM gets its own. */
  setReportHandler(): void {}

  /** Hardware needs no driving; completions come into their rings. */
  progress(): boolean {
    return this.addon.progress(this.number) > 0;
  }

  readCounters(): Readonly<Record<string, number>> {
    return readSysfsCounters(this.name, this.attributes.portNumber);
  }

  /** Sets whether the device's events keep the process alive. */
  setProcessHold(alive: boolean): void {
    if (!this.closing) check('uv_ref', this.addon.setAlive(this.number, alive ? 1 : 0));
  }

  close(): Promise<void> {
    this.closing ??= this.destroyAll();
    return this.closing;
  }

  /**
   * The kernel is taking it away, and waits until no process has it open: rdma_cm says so for every
   * device, verbs for those whose driver can take it from processes that have it open (rdma_rxe of
   * Linux 6.1 cannot).
   */
  noteRemoval(): void {
    this.deliver(AsyncEventType.DEVICE_FATAL, 0);
  }

  /** Runs a handler in the pump; an exception in it stops nothing. */
  handle(handler: () => void): void {
    this.pump(() => {
      try {
        handler();
      } catch (error) {
        this.logger.error('a handler threw', { device: this.name, error });
      }
    });
  }

  /** Why memory could not be registered. */
  registrationError(errno: number, lengthBytes: number, iova?: bigint): SpiError {
    const place = iova === undefined ? '' : ` at iova 0x${iova.toString(16)}`;
    const offset = 'an iova must agree with the address of the memory modulo its page';
    const hint = errno === EINVAL && iova !== undefined ? `; ${offset}` : '';
    const error = errnoError('ibv_reg_mr', errno, `${lengthBytes} bytes${place}${hint}`);
    if (error.code !== 'ENOMEM') return error;
    return registrationOutOfMemory(lengthBytes, this.registeredBytes, lockedMemory());
  }

  private async destroyAll(): Promise<void> {
    const errno = this.addon.closeDevice(this.number, 1);
    for (const object of [...this.objects].reverse()) object.markDestroyed();
    this.onClosed();
    check(CALLS.close, errno, this.name);
  }

  private checkOpen(): void {
    if (this.closing) throw new SpiError('ENODEV', `device ${this.name} is closed`);
  }

  /** Finds the queue now: when the handler runs, the number may be another object's. */
  private notify(cq: number): void {
    const queue = this.events.completionQueues.get(cq);
    if (queue) this.handle(() => queue.notify());
  }

  /** @param failedCall for DEVICE_FATAL: events come no more, and `number` is why */
  private deliver(type: AsyncEventType, number: number, failedCall?: number): void {
    if (type === AsyncEventType.DEVICE_FATAL && this.gone) return;
    const call = failedCall === undefined ? undefined : CALLS.events[failedCall];
    if (call !== undefined) this.logger.error(errnoError(call, number, this.name).message);
    const receiver = this.events.receiverOf(type, number);
    if (receiver === undefined) return;
    if (receiver !== 'device') {
      this.handle(() => receiver.deliver(type));
      return;
    }
    if (type === AsyncEventType.DEVICE_FATAL) this.gone = true;
    if (RELEASES.has(type)) this.handle(() => this.gate.release());
    if (type === AsyncEventType.GID_CHANGE) this.handle(() => this.gidTable.read());
    this.handle(() => this.eventHandler(type));
  }
}
