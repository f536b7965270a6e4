/** A device for tests of the MAD and CM modules: just as much of one as they use. */
import {
  type AddressHandle,
  type AddressVector,
  type CompletionQueueInit,
  type Device,
  type DeviceAttributes,
  type DeviceCapability,
  type Gid,
  GSI_QPN,
  isIpv4Gid,
  type MemoryRegion,
  type NetworkReport,
  type ProtectionDomain,
  QpState,
  QpType,
  type QueuePairInit,
  SpiError,
} from '../../core/spi/index.js';
import type { FakeNetwork } from './fake-network.js';
import { FakeCompletionQueue, FakeQueuePair } from './fake-queue-pair.js';

const ATTRIBUTES: DeviceAttributes = {
  nodeGuid: 0n,
  vendorId: 0,
  vendorPartId: 0,
  hardwareVersion: 0,
  firmwareVersion: 'fake',
  portNumber: 1,
  activeMtuBytes: 1024,
  maxMessageBytes: 2 ** 31,
  maxQueuePairs: 1024,
  maxQueuePairWr: 1024,
  maxSge: 4,
  maxInlineBytes: 0,
  maxCompletionQueues: 1024,
  maxCompletionQueueEntries: 65_536,
  maxMemoryRegions: 1024,
  maxMemoryRegionBytes: 2 ** 31,
  maxMemoryWindows: 0,
  maxProtectionDomains: 64,
  maxSharedReceiveQueues: 0,
  maxSharedReceiveQueueWr: 0,
  maxResponderResources: 16,
  maxInitiatorDepth: 16,
  localAckDelay: 15,
};

export class FakeDevice implements Device {
  readonly name = 'fake';
  readonly capabilities = new Set<DeviceCapability>(['rc', 'ud', 'xrc']);
  readonly attributes: DeviceAttributes;
  readonly addressHandles = new Map<number, AddressVector>();
  readonly regions = new Map<number, Uint8Array>();
  qp1: FakeQueuePair | undefined;
  liveObjects = 0;
  /** Torn out: calls that reach the hardware fail. */
  dead = false;
  private nextNumber = 100;
  private onReport: (report: NetworkReport) => void = () => undefined;

  constructor(
    readonly network: FakeNetwork,
    readonly gids: readonly Gid[],
    attributes: Partial<DeviceAttributes>,
  ) {
    this.attributes = { ...ATTRIBUTES, ...attributes };
    network.devices.push(this);
  }

  /** @throws SpiError('EIO') */
  checkAlive(): void {
    if (this.dead) throw new SpiError('EIO', 'the device is gone');
  }

  number(): number {
    return this.nextNumber++;
  }

  createProtectionDomain(): ProtectionDomain {
    this.liveObjects++;
    return {
      registerMemory: (memory) => this.register(memory),
      destroy: () => void this.liveObjects--,
    };
  }

  allocate(lengthBytes: number): ArrayBuffer {
    return new ArrayBuffer(lengthBytes);
  }

  createCompletionQueue(init: CompletionQueueInit): FakeCompletionQueue {
    this.liveObjects++;
    return new FakeCompletionQueue(this, init);
  }

  createQueuePair(init: QueuePairInit): FakeQueuePair {
    this.liveObjects++;
    const qpn = init.type === QpType.GSI ? GSI_QPN : this.number();
    const qp = this.makeQueuePair(init, qpn);
    if (init.type === QpType.GSI) this.qp1 = qp;
    return qp;
  }

  /** A connected queue pair in INIT, without queues of any use. */
  connectableQp(type: QpType = QpType.RC): FakeQueuePair {
    const cq = this.createCompletionQueue({
      minEntries: 1,
      onNotify: () => undefined,
      onEvent: () => undefined,
    });
    const qp = this.createQueuePair({
      type,
      pd: this.createProtectionDomain(),
      sendCq: cq,
      receiveCq: cq,
      maxSendWr: 1,
      maxReceiveWr: 1,
      maxSendSge: 1,
      maxReceiveSge: 1,
      maxInlineBytes: 0,
      context: 0,
      onEvent: () => undefined,
    });
    qp.modify({ state: QpState.INIT, pkeyIndex: 0, portNumber: 1, accessFlags: 0 });
    return qp;
  }

  createAddressHandle(_pd: ProtectionDomain, attributes: AddressVector): AddressHandle {
    const handle = this.number();
    const local = this.gids[attributes.localGidIndex];
    if (!local || isIpv4Gid(local) !== isIpv4Gid(attributes.gid)) {
      throw new SpiError('ENETUNREACH', 'no address of that family');
    }
    this.addressHandles.set(handle, attributes);
    return { handle, destroy: () => void this.addressHandles.delete(handle) };
  }

  setEventHandler(): void {
    // No test here has device events.
  }

  setReportHandler(handler: (report: NetworkReport) => void): void {
    this.onReport = handler;
  }

  report(report: NetworkReport): void {
    this.network.world.defer(() => this.onReport(report));
  }

  /** By ICMP, which anybody can forge. */
  reportUnreachable(gid: Gid): void {
    this.report({ type: 'port-unreachable', gid });
  }

  progress(): boolean {
    return false;
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  receive(mad: Uint8Array, source: Gid, destination: Gid): void {
    this.qp1?.receive(mad, source, destination);
  }

  protected makeQueuePair(init: QueuePairInit, qpn: number): FakeQueuePair {
    return new FakeQueuePair(this, init, qpn);
  }

  private register(memory: ArrayBufferView): MemoryRegion {
    this.liveObjects++;
    const lkey = this.number();
    const bytes = new Uint8Array(memory.buffer, memory.byteOffset, memory.byteLength);
    this.regions.set(lkey, bytes);
    const destroy = (): void => {
      this.liveObjects--;
      this.regions.delete(lkey);
    };
    return { lkey, rkey: lkey, lengthBytes: bytes.length, iova: 0n, destroy };
  }
}
