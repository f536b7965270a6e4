/**
 * The CM module over librdmacm: carries out the consumer's requests, and finds the owners of the
 * kernel's events.
 */
import {
  CLOCK,
  type Clock,
  type CmConnection,
  type CmConnectOptions,
  type CmListener,
  type CmListenOptions,
  type CmModule,
  type CmResolution,
  type CmResolveOptions,
  DEVICE,
  type Device,
  inject,
  LOGGER,
  type Logger,
  PortSpace,
  SCHEDULER,
  type Scheduler,
  SpiError,
  TIMERS,
  type Timers,
} from '../../../core/spi/index.js';
import { deferring, messageOf, NO_DATA, serviceName } from '../../../plugins/cm/provider.js';
import { CmEventType, type CmNative } from '../addon/rdmacm.js';
import type { VerbsDevice } from '../device.js';
import { errnoName } from '../system/errno.js';
import { OWN_DEVICE } from '../objects/open-device.js';
import { ADDON } from '../opening/libraries.js';
import { ActiveConnection } from './active.js';
import { CmCalls } from './calls.js';
import { CmChannel, type CmNativeEvent } from './channel.js';
import type { CmIdOwner, CmServices } from './connection.js';
import { bindTo, makeId } from './identifier.js';
import { VerbsListener } from './listener.js';
import { LocalAddresses } from './local-addresses.js';
import { PortGate } from './port-gate.js';
import { VerbsResolution } from './resolution.js';

// Hears that the device is being removed. rdma_cm tells each identifier that is bound to a device,
// and an adapter may have none: this one is bound to an address, and does nothing. Of verbs only
// drivers that can take the device from the processes that have it open tell (rdma_rxe cannot); the
// kernel waits until all have closed it.

/** Any one that is free. */
const PORT = 0;
const PORT_SPACE = Number(PortSpace.TCP);

class RemovalWatch implements CmIdOwner {
  private id: number | undefined;

  /** Without an address there is nothing to bind to, and nothing is heard. */
  constructor(private readonly services: CmServices) {
    const { addresses, logger, device } = services;
    const refused: string[] = [];
    for (const address of addresses.all(PORT)) {
      try {
        this.id = makeId(services, PORT_SPACE, (id) => bindTo(services, id, address));
        services.own(this.id, this);
        return;
      } catch (error) {
        refused.push(messageOf(error));
      }
    }
    const reason = refused.join('; ') || 'no address';
    logger.debug(`CM: the removal of ${device.name} is heard by connections alone: ${reason}`);
  }

  onNativeEvent(event: CmNativeEvent): void {
    if (event.type === CmEventType.DEVICE_REMOVAL) this.close();
  }

  close(): void {
    if (this.id === undefined) return;
    this.services.destroyId(this.id);
    this.id = undefined;
  }
}

export interface VerbsCmDependencies {
  /** The addon, with librdmacm loaded. */
  readonly native: CmNative;
  readonly device: Device;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly scheduler: Scheduler;
  readonly logger: Logger;
  /**
   * The gate of its port, and the call when rdma_cm says that it is being removed: with each of its
   * identifiers. Absent: its port is always up.
   */
  readonly own?: Pick<VerbsDevice, 'gate' | 'noteRemoval'>;
  /** Absent: those of the device, with what the operating system says of them. */
  readonly addresses?: LocalAddresses;
}

export interface VerbsCmOptions {
  /** Limit of address resolution, and again of route resolution; default 2000. */
  readonly resolveTimeoutMs?: number;
}

const RESOLVE_TIMEOUT_MS = 2_000;

export class VerbsCm implements CmModule {
  private readonly channel: CmChannel;
  private readonly services: CmServices;
  private readonly owners = new Map<number, CmIdOwner>();
  private readonly listeners = new Map<bigint, VerbsListener>();
  private readonly watch: RemovalWatch;
  private closed = false;

  /** @throws SpiError when rdma_cm cannot be opened */
  constructor(
    @inject({
      native: ADDON,
      device: DEVICE,
      clock: CLOCK,
      timers: TIMERS,
      scheduler: SCHEDULER,
      logger: LOGGER,
      own: OWN_DEVICE,
    })
    private readonly dependencies: VerbsCmDependencies,
    { resolveTimeoutMs = RESOLVE_TIMEOUT_MS }: VerbsCmOptions = {},
  ) {
    const { native, device, clock, timers, logger, own } = dependencies;
    const calls = new CmCalls(native);
    this.channel = new CmChannel(
      native,
      logger,
      (event) => this.onEvent(event),
      (errno) => this.onGivenUp(errno),
    );
    this.services = {
      calls,
      device,
      addresses: dependencies.addresses ?? new LocalAddresses(device),
      gate: own?.gate ?? new PortGate(() => true),
      clock,
      timers,
      logger,
      channel: this.channel.number,
      resolveTimeoutMs,
      own: (id, owner) => void this.owners.set(id, owner),
      destroyId: (id) => this.destroyId(id),
      onRemoval: () => own?.noteRemoval(),
      defer: deferring(dependencies, () => this.closed),
    };
    this.watch = new RemovalWatch(this.services);
  }

  /** True when nothing of any connection or resolution is held; listeners do not count. */
  get isIdle(): boolean {
    return [...this.owners.values()].every((owner) => owner === this.watch);
  }

  listen(options: CmListenOptions): CmListener {
    this.checkOpen();
    const { serviceId, transport = 'rc' } = options;
    if (transport !== 'rc') {
      const what = `transport ${transport}: identifiers of librdmacm take requests for RC only`;
      throw new SpiError('EOPNOTSUPP', what);
    }
    if (this.listeners.has(serviceId)) {
      throw new SpiError('EADDRINUSE', `${serviceName(serviceId)} has a listener already`);
    }
    const onClose = (): void => void this.listeners.delete(serviceId);
    const listener = new VerbsListener(this.services, options, onClose);
    this.listeners.set(serviceId, listener);
    return listener;
  }

  connect(options: CmConnectOptions): CmConnection {
    this.checkOpen();
    return ActiveConnection.begin(this.services, options);
  }

  resolve(options: CmResolveOptions): CmResolution {
    this.checkOpen();
    return VerbsResolution.begin(this.services, options);
  }

  /** The kernel sends what there is to send (DREQ, REJ) when identifiers go; nothing is awaited. */
  close(): Promise<void> {
    if (!this.closed) {
      this.closed = true;
      for (const listener of [...this.listeners.values()]) listener.close();
      for (const owner of [...this.owners.values()]) owner.close();
      this.services.gate.release();
      this.channel.close();
    }
    return Promise.resolve();
  }

  private checkOpen(): void {
    if (this.closed) throw new SpiError('ENODEV', 'the CM module is closed');
  }

  private onEvent(event: CmNativeEvent): void {
    if (event.type === CmEventType.DEVICE_REMOVAL) this.services.onRemoval();
    // An identifier that has gone meanwhile has no owner to tell.
    try {
      this.owners.get(event.id)?.onNativeEvent(event);
    } catch (error) {
      this.dependencies.logger.error('CM: a handler threw', { error });
    }
  }

  private onGivenUp(errno: number): void {
    const { logger } = this.dependencies;
    logger.error('CM: events are no longer read; connections end as they do when a device goes');
    const removal = { ...NO_EVENT, type: CmEventType.DEVICE_REMOVAL, status: errno };
    for (const owner of [...this.owners.values()]) owner.onNativeEvent(removal);
  }

  private destroyId(id: number): void {
    this.owners.delete(id);
    const errno = this.services.calls.destroyId(id);
    if (errno !== 0) this.dependencies.logger.warn(`CM: rdma_destroy_id: ${errnoName(errno)}`);
  }
}

const NO_EVENT: CmNativeEvent = {
  type: CmEventType.DEVICE_REMOVAL,
  id: 0,
  status: 0,
  isDatagram: false,
  responderResources: 0,
  initiatorDepth: 0,
  retryCount: 0,
  rnrRetryCount: 0,
  qpn: 0,
  qkey: 0,
  privateData: NO_DATA,
};
