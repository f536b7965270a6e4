/** The software HCA as core sees it: makes the objects, and rejects invalid arguments. */
import { checkInteger, show } from '../../core/spi/checks/index.js';
import { einval } from '../../core/spi/errors/einval.js';
import {
  type AddressHandle,
  type AddressVector,
  type AsyncEventType,
  type CompletionQueue,
  type CompletionQueueInit,
  type Device,
  type DeviceAttributes,
  type DeviceCapability,
  type Gid,
  GSI_QPN,
  LOCAL_MTU_BYTES,
  type MemoryWindow,
  type NetworkReport,
  type PacketPort,
  PORT_COUNTERS,
  type ProtectionDomain,
  QpType,
  type QueuePair,
  type QueuePairInit,
  type Random,
  type SharedReceiveQueue,
  type SharedReceiveQueueInit,
  SpiError,
  type XrcDomainHandle,
  type XrcSharing,
} from '../../core/spi/index.js';
import { PEER_AGREEMENT, softwareGuid } from '../../core/spi/internal/index.js';
import type { HcaCounters } from './common/counters.js';
import { MAX_MESSAGE_BYTES } from './common/parameters.js';
import { MAX_CQ_ENTRIES, SoftCompletionQueue } from './completions/completion-queue.js';
import type { Hca } from './hca.js';
import { Domain } from './memory/domain.js';
import type { SoftQueuePair } from './queue-pair/queue-pair.js';
import { RcQueuePair } from './rc/queue-pair.js';
import { countQueuePair, countSharedReceives } from './reference-counts.js';
import { addPath } from './sending/peer-path.js';
import { SoftSharedReceiveQueue } from './srq/shared-receive-queue.js';
import { SoftXrcDomain } from './srq/xrc-domain.js';
import { UcQueuePair } from './uc/queue-pair.js';
import { gsiPacket, UdQueuePair } from './ud/queue-pair.js';
import type { HcaDriver } from './driver.js';

/** The class for each type of queue pair. */
type QueuePairClass = new (hca: Hca, qpn: number, init: QueuePairInit) => SoftQueuePair;

const QUEUE_PAIR_CLASSES: ReadonlyMap<QpType, QueuePairClass> = new Map([
  [QpType.GSI, UdQueuePair],
  [QpType.RC, RcQueuePair],
  [QpType.UC, UcQueuePair],
  [QpType.UD, UdQueuePair],
  [QpType.XRC_INI, RcQueuePair],
  [QpType.XRC_TGT, RcQueuePair],
] as [QpType, QueuePairClass][]);

/** Local CA ACK delay 2^15 * 4.096 us, as rxe says of itself: an event loop may be busy so long. */
const LOCAL_ACK_DELAY = 15;
const OBJECTS = 1 << 20;

/** Capabilities over any port. */
const ALWAYS = [
  'rc',
  'uc',
  'ud',
  'atomic',
  'shared-receive-queue',
  'xrc',
  'memory-window',
  'send-with-invalidate',
] as const satisfies readonly DeviceCapability[];

/** `provides` of a provider of the software HCA and the modules over it. */
export const HCA_PROVIDES = [...ALWAYS, 'mad', 'cm'] as const;

/** Calls that a provider adds to the device. */
export interface DeviceHooks {
  /** The provider's own end: its timers. */
  readonly onClosed?: () => void;
  /** Present if the provider supports them. */
  readonly mapFile?: NonNullable<Device['mapFile']>;
  readonly shareMemory?: NonNullable<Device['shareMemory']>;
  /** Present if the provider's port prefers some memory to other memory. */
  readonly allocate?: Device['allocate'];
  /**
   * @internal of a device that processes share: a domain by a key, or undefined where it is
   * in-process
   */
  readonly openXrcDomain?: (hca: Hca, sharing: XrcSharing) => Promise<SoftXrcDomain | undefined>;
  /** Counters of the port, if it has more than PORT_COUNTERS. */
  readonly portCounters?: readonly string[];
}

export class HcaDevice implements Device {
  readonly attributes: DeviceAttributes;
  readonly capabilities: ReadonlySet<DeviceCapability>;
  readonly mapFile?: NonNullable<Device['mapFile']>;
  readonly shareMemory?: NonNullable<Device['shareMemory']>;
  readonly allocate: Device['allocate'];
  readonly keepExitMad?: NonNullable<Device['keepExitMad']>;
  readonly dropExitMad?: NonNullable<Device['dropExitMad']>;
  readonly meet?: NonNullable<Device['meet']>;
  readonly share?: NonNullable<Device['share']>;
  readonly openXrcDomain?: NonNullable<Device['openXrcDomain']>;
  private readonly domains = new Set<Domain>();
  private readonly cqs = new Set<SoftCompletionQueue>();
  private eventHandler: (event: AsyncEventType) => void = () => undefined;
  private reportHandler: (report: NetworkReport) => void = () => undefined;
  private closing: Promise<void> | undefined;

  /** @internal the driver makes it */
  constructor(
    readonly name: string,
    /** @internal */
    readonly hca: Hca,
    random: Random,
    private readonly drive: HcaDriver,
    private readonly hooks: DeviceHooks = {},
  ) {
    if (hooks.mapFile !== undefined) this.mapFile = hooks.mapFile;
    if (hooks.shareMemory !== undefined) this.shareMemory = hooks.shareMemory;
    this.allocate = hooks.allocate ?? ((lengthBytes) => new ArrayBuffer(lengthBytes));
    const { port } = hca;
    if (port.keepExitPacket !== undefined) {
      this.keepExitMad = (mad, to) => this.keepExitPacket(mad, to);
      this.dropExitMad = (number) => port.dropExitPacket?.(number);
    }
    if (port.meet !== undefined) this.meet = (peer, done) => port.meet?.(peer, done);
    if (hca.share !== undefined) this.share = hca.share;
    this.attributes = deviceAttributes(hca, random);
    const capabilities = new Set<DeviceCapability>(ALWAYS);
    if (hca.multicast.possible) capabilities.add('multicast');
    if (hooks.openXrcDomain !== undefined) {
      capabilities.add('xrc-between-processes');
      this.openXrcDomain = async (sharing): Promise<XrcDomainHandle> => {
        this.checkOpen();
        const hosted = await hooks.openXrcDomain?.(hca, sharing);
        return hosted ?? this.createXrcDomain(sharing);
      };
    }
    this.capabilities = capabilities;
  }

  get gids(): readonly Gid[] {
    return this.hca.port.gids;
  }

  readCounters(): Readonly<Record<string, number>> {
    const { counters, port } = this.hca;
    const ofPort: Readonly<Record<string, number | undefined>> = port.counters;
    const read = counters.read();
    for (const name of this.hooks.portCounters ?? PORT_COUNTERS) read[name] = ofPort[name] ?? 0;
    return read;
  }

  get counters(): HcaCounters {
    return this.hca.counters;
  }

  createProtectionDomain(): ProtectionDomain {
    this.checkOpen();
    const domain: Domain = new Domain(this.hca.memory, () => this.domains.delete(domain));
    this.domains.add(domain);
    return domain;
  }

  createCompletionQueue(init: CompletionQueueInit): CompletionQueue {
    this.checkOpen();
    const cq = new SoftCompletionQueue(this.hca, init);
    this.cqs.add(cq);
    return cq;
  }

  createQueuePair(init: QueuePairInit): QueuePair {
    this.checkOpen();
    const QueuePair = this.checkedClass(init);
    const { queuePairs } = this.hca;
    if (init.type === QpType.XRC_TGT) {
      const { hostProcess } = init.xrcDomain as SoftXrcDomain;
      if (hostProcess !== undefined) return hostProcess.createTarget(init);
    }
    const gsi = init.type === QpType.GSI;
    if (gsi && queuePairs.find(GSI_QPN)) throw new SpiError('EBUSY', 'QP1 exists already');
    const qpn = gsi ? GSI_QPN : queuePairs.freshQpn();
    const qp = new QueuePair(this.hca, qpn, init);
    queuePairs.insert(qp);
    countQueuePair(qp, 1);
    return qp;
  }

  createSharedReceiveQueue(init: SharedReceiveQueueInit): SharedReceiveQueue {
    this.checkOpen();
    const { maxSharedReceiveQueues, maxSharedReceiveQueueWr, maxSge } = this.attributes;
    checkParent('pd', Domain, init.pd, this.hca.memory);
    if (init.xrc) {
      checkParent('xrc.domain', SoftXrcDomain, init.xrc.domain, this.hca);
      checkParent('xrc.cq', SoftCompletionQueue, init.xrc.cq, this.hca);
    }
    checkInteger('maxSge', init.maxSge, 0, maxSge, einval);
    const { sharedReceives } = this.hca;
    if (sharedReceives.size >= maxSharedReceiveQueues) {
      throw new SpiError('ENOMEM', `${maxSharedReceiveQueues} shared receive queues exist already`);
    }
    const { hostProcess } = (init.xrc?.domain as SoftXrcDomain | undefined) ?? {};
    if (hostProcess !== undefined) return hostProcess.createSharedReceiveQueue(init);
    const srqn = sharedReceives.freshNumber();
    const srq = new SoftSharedReceiveQueue(this.hca, srqn, init, maxSharedReceiveQueueWr);
    sharedReceives.insert(srq);
    countSharedReceives(srq, 1);
    return srq;
  }

  createXrcDomain(sharing?: XrcSharing): XrcDomainHandle {
    this.checkOpen();
    if (sharing?.mode === 'existing') {
      throw new SpiError('ENODEV', `there is no XRC domain ${show(sharing.key)}`);
    }
    return new SoftXrcDomain(this.hca);
  }

  createMemoryWindow(pd: ProtectionDomain, type: 1 | 2): MemoryWindow {
    this.checkOpen();
    checkParent('pd', Domain, pd, this.hca.memory);
    if (type !== 1 && type !== 2) throw new SpiError('EINVAL', `memory window type ${show(type)}`);
    const { windows } = this.hca.memory;
    const { maxMemoryWindows } = this.attributes;
    if (windows.size >= maxMemoryWindows) {
      throw new SpiError('ENOMEM', `${maxMemoryWindows} memory windows exist already`);
    }
    return windows.create(pd, type);
  }

  createAddressHandle(pd: ProtectionDomain, attributes: AddressVector): AddressHandle {
    this.checkOpen();
    checkParent('pd', Domain, pd, this.hca.memory);
    return this.hca.addressHandles.create(pd, addPath(this.hca.port, attributes, 'gid'));
  }

  /**
   * Hands the port a MAD to keep. The port reads the path during the call, so it is removed at
   * once.
   */
  private keepExitPacket(mad: Uint8Array, to: AddressVector): number {
    this.checkOpen();
    const { port } = this.hca;
    const path = addPath(port, to, 'gid');
    try {
      return port.keepExitPacket!(path, gsiPacket(mad));
    } finally {
      port.removePath(path);
    }
  }

  setEventHandler(handler: (event: AsyncEventType) => void): void {
    this.eventHandler = handler;
  }

  setReportHandler(handler: (report: NetworkReport) => void): void {
    this.reportHandler = handler;
  }

  progress(): boolean {
    return this.drive.progress();
  }

  /** True from the beginning of `close` on. */
  get isClosing(): boolean {
    return this.closing !== undefined;
  }

  close(): Promise<void> {
    this.closing ??= this.destroyAll();
    return this.closing;
  }

  /** @internal it has been destroyed */
  onCqGone(cq: SoftCompletionQueue): void {
    this.cqs.delete(cq);
  }

  /** @internal an event of the device or its port, told at the end of the pump. */
  raise(event: AsyncEventType): void {
    this.hca.notifications.push(() => this.eventHandler(event));
  }

  /** @internal the port's word of packets to an address: for connections there, and for the CM. */
  onReport(report: NetworkReport): void {
    this.hca.onReport(report);
    this.hca.notifications.push(() => this.reportHandler(report));
  }

  private async destroyAll(): Promise<void> {
    for (const qp of [...this.hca.queuePairs]) qp.destroy();
    this.hca.sharedReceives.destroyAll();
    for (const cq of [...this.cqs]) cq.destroy();
    this.hca.addressHandles.destroyAll();
    this.hca.memory.destroyAll();
    for (const domain of [...this.domains]) domain.destroy();
    await this.hca.port.close();
    this.hooks.onClosed?.();
  }

  private checkOpen(): void {
    if (this.closing) throw new SpiError('ENODEV', `device ${this.name} is closed`);
  }

  /** The class of a queue pair that is good to make. */
  private checkedClass(init: QueuePairInit): QueuePairClass {
    const { maxQueuePairWr, maxSge, maxInlineBytes, maxQueuePairs } = this.attributes;
    const found = QUEUE_PAIR_CLASSES.get(init.type);
    if (!found) {
      throw new SpiError('EOPNOTSUPP', `queue pair type ${init.type} is not supported`);
    }
    checkParent('pd', Domain, init.pd, this.hca.memory);
    checkParent('sendCq', SoftCompletionQueue, init.sendCq, this.hca);
    checkParent('receiveCq', SoftCompletionQueue, init.receiveCq, this.hca);
    if (init.srq) checkSharedReceives(init.srq, this.hca);
    if (isXrc(init.type)) checkParent('xrcDomain', SoftXrcDomain, init.xrcDomain, this.hca);
    if (this.hca.queuePairs.size >= maxQueuePairs) {
      throw new SpiError('ENOMEM', `${maxQueuePairs} queue pairs exist already`);
    }
    const most = {
      maxSendWr: maxQueuePairWr,
      maxReceiveWr: maxQueuePairWr,
      maxSendSge: maxSge,
      maxReceiveSge: maxSge,
      maxInlineBytes,
      context: 0xffffffff,
    };
    for (const name of Object.keys(most) as (keyof typeof most)[]) {
      checkInteger(name, init[name], 0, most[name], einval);
    }
    return found;
  }
}

function isXrc(type: QpType): boolean {
  return type === QpType.XRC_INI || type === QpType.XRC_TGT;
}

/** Agreements that the device can keep and offers to peers of our make. */
function offersOfPort(port: PacketPort): number {
  const { LATE_ACK, ONE_PORT, LOCAL_MTU, CREDITS } = PEER_AGREEMENT;
  const always = LATE_ACK | ONE_PORT | CREDITS;
  return always | (port.localMtuBytes === LOCAL_MTU_BYTES ? LOCAL_MTU : 0);
}

const GUID_BITS = 0xffffffffn;

/** @param random makes it unique, unless all processes of the device are given one */
function nodeGuidOf({ parameters, port, share }: Hca, random: number): bigint {
  const own = share === undefined ? random : Number(share.nodeGuid & GUID_BITS);
  const slots = share === undefined ? 0 : PEER_AGREEMENT.SLOTS;
  if (!parameters.agreements) return softwareGuid(slots, own);
  const offers = offersOfPort(port) | slots;
  const found = softwareGuid(offers | PEER_AGREEMENT.CHANNEL, own);
  return port.listen?.(found) === true ? found : softwareGuid(offers, own);
}

function deviceAttributes(hca: Hca, random: Random): DeviceAttributes {
  const { parameters, port } = hca;
  return {
    nodeGuid: nodeGuidOf(hca, random.u32()),
    vendorId: 0xffffff,
    vendorPartId: 0,
    hardwareVersion: 0,
    firmwareVersion: '0.1.0',
    portNumber: 1,
    activeMtuBytes: port.mtuBytes,
    maxMessageBytes: MAX_MESSAGE_BYTES,
    maxQueuePairs: parameters.maxQueuePairs,
    maxQueuePairWr: parameters.maxQueuePairWr,
    maxSge: parameters.maxSge,
    maxInlineBytes: parameters.maxInlineBytes,
    maxCompletionQueues: OBJECTS,
    maxCompletionQueueEntries: MAX_CQ_ENTRIES,
    reportsSolicited: true,
    maxMemoryRegions: OBJECTS,
    maxMemoryRegionBytes: Number.MAX_SAFE_INTEGER,
    maxMemoryWindows: OBJECTS,
    maxProtectionDomains: OBJECTS,
    maxSharedReceiveQueues: OBJECTS,
    maxSharedReceiveQueueWr: parameters.maxQueuePairWr,
    maxResponderResources: parameters.maxResponderResources,
    maxInitiatorDepth: parameters.maxInitiatorDepth,
    localAckDelay: LOCAL_ACK_DELAY,
  };
}

// Checks that objects passed in are ours, of the same device, and not destroyed.

/** An object that others are made with. */
interface Parent<Owner> {
  readonly destroyed: boolean;
  belongsTo(owner: Owner): boolean;
}

/** @throws SpiError('EINVAL') that names the object */
function checkParent<Owner, T extends Parent<Owner>>(
  name: string,
  type: abstract new (...args: never[]) => T,
  object: unknown,
  owner: Owner,
): asserts object is T {
  if (!(object instanceof type) || !object.belongsTo(owner)) {
    throw einval(name, object, 'one of this device');
  }
  if (object.destroyed) throw einval(name, object, 'one that is not destroyed');
}

/** @throws SpiError('EINVAL') */
function checkSharedReceives(srq: SharedReceiveQueue, hca: Hca): void {
  if (!(srq instanceof SoftSharedReceiveQueue) || hca.sharedReceives.find(srq.srqn) !== srq) {
    throw einval('srq', srq, 'one of this device, not destroyed');
  }
  if (srq.completionQueue) throw new SpiError('EINVAL', 'an XRC SRQ belongs to no queue pair');
}
