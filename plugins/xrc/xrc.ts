/**
 * The XRC module: domains of one device by key, and the handles of each consumer. Reference
 * counting and sharing are here, not in the provider. Consumers only exchange keys, numbers and
 * events, so that a registry in another process could take this one's place.
 */
import { show } from '../../core/spi/checks/index.js';
import {
  DEVICE,
  type Device,
  inject,
  LOGGER,
  type Logger,
  plugin,
  SpiError,
  type XrcConsumer,
  type XrcDomain,
  type XrcDomainHandle,
  type XrcModule,
  type XrcOpenMode,
  type XrcSharing,
} from '../../core/spi/index.js';
import { DomainHold } from './domain-hold.js';
import { SharedDomain } from './shared-domain.js';

export interface XrcDependencies {
  readonly device: Device;
  readonly logger: Logger;
}

const MODES: readonly unknown[] = ['create', 'exclusive', 'existing'];

@plugin({ name: 'xrc', kind: 'xrc', sdkVersion: '2.0', options: {} })
export class Xrc implements XrcModule {
  private readonly byKey = new Map<string, SharedDomain>();
  private readonly holds = new Map<XrcConsumer, Set<DomainHold>>();
  /** Domains that their device is opening now, by key. */
  private readonly opening = new Map<string, Promise<void>>();
  private closed = false;

  constructor(
    @inject({ device: DEVICE, logger: LOGGER }) private readonly dependencies: XrcDependencies,
  ) {}

  openDomain(
    consumer: XrcConsumer,
    key: string | undefined,
    mode: XrcOpenMode,
  ): XrcDomain | Promise<XrcDomain> {
    const { device } = this.dependencies;
    this.checkOpen();
    if (!device.capabilities.has('xrc')) {
      throw new SpiError('EOPNOTSUPP', `device ${device.name} knows no XRC`);
    }
    if (!MODES.includes(mode)) {
      throw new SpiError('EINVAL', `mode is ${show(mode)}, must be one of ${MODES.join(', ')}`);
    }
    if (key !== undefined && device.openXrcDomain) return this.openLater(consumer, { key, mode });
    const sharing = key === undefined ? undefined : { key, mode };
    const domain = this.find(key, mode) ?? this.create(sharing, device.createXrcDomain?.(sharing));
    return this.hold(consumer, domain);
  }

  /** Has the device open a domain once, however many calls open it at the same time. */
  private async openLater(consumer: XrcConsumer, sharing: XrcSharing): Promise<XrcDomain> {
    const { key, mode } = sharing;
    const { device } = this.dependencies;
    for (let other = this.opening.get(key); other; other = this.opening.get(key)) await other;
    this.checkOpen();
    const found = this.find(key, mode);
    if (found) return this.hold(consumer, found);
    let end = (): void => undefined;
    this.opening.set(key, new Promise((resolve) => (end = resolve)));
    try {
      const handle = await device.openXrcDomain!(sharing);
      if (this.closed) handle.destroy();
      this.checkOpen();
      return this.hold(consumer, this.create(sharing, handle));
    } finally {
      this.opening.delete(key);
      end();
    }
  }

  private checkOpen(): void {
    if (!this.closed) return;
    throw new SpiError('ENODEV', `device ${this.dependencies.device.name} is closed`);
  }

  private hold(consumer: XrcConsumer, domain: SharedDomain): XrcDomain {
    const { device } = this.dependencies;
    const own = this.holds.get(consumer) ?? new Set<DomainHold>();
    this.holds.set(consumer, own);
    const hold: DomainHold = new DomainHold(domain, consumer, device, () => {
      own.delete(hold);
      if (own.size === 0) this.holds.delete(consumer);
    });
    own.add(hold);
    return hold;
  }

  /** Releases a consumer's domains. Errors do not stop it; they are thrown together at the end. */
  release(consumer: XrcConsumer): void {
    const failures: unknown[] = [];
    for (const hold of [...(this.holds.get(consumer) ?? [])]) {
      try {
        hold.release();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length === 1) throw failures[0];
    if (failures.length > 1) throw new AggregateError(failures, 'XRC domains that do not close');
  }

  async close(): Promise<void> {
    this.closed = true;
    for (const consumer of [...this.holds.keys()]) this.release(consumer);
  }

  private find(key: string | undefined, mode: XrcOpenMode): SharedDomain | undefined {
    const domain = key === undefined ? undefined : this.byKey.get(key);
    if (domain && mode === 'exclusive') {
      throw new SpiError('EINVAL', `XRC domain ${show(domain.key ?? '')} exists already`);
    }
    const elsewhere = this.dependencies.device.capabilities.has('xrc-between-processes');
    if (!domain && mode === 'existing' && (key === undefined || !elsewhere)) {
      throw new SpiError('ENODEV', `there is no XRC domain ${show(key ?? '')}`);
    }
    return domain;
  }

  private create(
    sharing: XrcSharing | undefined,
    handle: XrcDomainHandle | undefined,
  ): SharedDomain {
    const { device, logger } = this.dependencies;
    const key = sharing?.key;
    if (!handle) throw new SpiError('EOPNOTSUPP', `device ${device.name} knows no XRC`);
    const domain = new SharedDomain(key, handle, device, logger, () => {
      if (key !== undefined) this.byKey.delete(key);
    });
    if (key !== undefined) this.byKey.set(key, domain);
    return domain;
  }
}
