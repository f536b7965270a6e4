/** Listeners by service id, each with its backlog of unanswered requests. */
import {
  type CmListener,
  type CmListenOptions,
  type DeviceShare,
  SpiError,
} from '../../../core/spi/index.js';
import { checkRange, checkServiceId } from '../common/checks.js';
import { serviceName } from '../wire/cma-header.js';
import { Backlog } from './shares.js';

export class Listener implements CmListener {
  /** Requests that the consumer has got and not answered. */
  readonly backlog: Backlog;

  constructor(
    readonly options: CmListenOptions,
    private readonly onClose: (listener: Listener) => void,
  ) {
    this.backlog = new Backlog(options.backlog);
  }

  close(): void {
    this.onClose(this);
  }
}

export class Listeners {
  private readonly byServiceId = new Map<bigint, Listener>();

  /** @param share if several processes share the device */
  constructor(private readonly share?: Pick<DeviceShare, 'claimService' | 'releaseService'>) {}

  /** @throws SpiError('EADDRINUSE'), ('EINVAL') */
  add(options: CmListenOptions): Listener {
    const { serviceId, backlog } = options;
    checkServiceId(serviceId);
    const name = serviceName(serviceId);
    checkRange('backlog', backlog, 1, Infinity);
    if (this.byServiceId.has(serviceId)) {
      throw new SpiError('EADDRINUSE', `${name} has a listener already`);
    }
    const listener = new Listener(options, (closing) => {
      if (this.byServiceId.get(serviceId) === closing) this.remove(serviceId);
    });
    this.share?.claimService(serviceId);
    this.byServiceId.set(serviceId, listener);
    return listener;
  }

  find(serviceId: bigint): Listener | undefined {
    return this.byServiceId.get(serviceId);
  }

  clear(): void {
    for (const serviceId of [...this.byServiceId.keys()]) this.remove(serviceId);
  }

  private remove(serviceId: bigint): void {
    this.byServiceId.delete(serviceId);
    this.share?.releaseService(serviceId);
  }
}
