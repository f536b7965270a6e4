/**
 * Listening through librdmacm: one identifier for each address of our device, so that requests for
 * other devices of the host, or of processes that listen there, never come here. The identifiers
 * share a channel of their own; while as many requests as the backlog allows wait for the
 * consumer, it is not read: the kernel holds as many more, and drops what comes then.
 */
import { SpiError } from '../../../core/spi/index.js';
import { checkRange } from '../../../plugins/cm/common/checks.js';
import type { CmListener, CmListenOptions } from '../../../core/spi/index.js';
import { serviceOf, type SocketAddress } from './address.js';
import { errnoName } from './calls.js';
import { CmChannel, MAX_READ_FAILURES, type CmNativeEvent } from './channel.js';
import { messageOf, type CmServices } from './connection.js';
import { VerbsInquiry } from './inquiry.js';
import { CmEventType } from '../addon/rdmacm.js';
import { VerbsRequest } from './request.js';

export class VerbsListener implements CmListener {
  private readonly channel: CmChannel;
  private readonly ids: number[] = [];
  private pending = 0;
  private readFailures = 0;
  private isDeaf = false;
  private isOpen = true;

  /** @throws SpiError as CmModule.listen; EADDRNOTAVAIL without an address to listen on */
  constructor(
    private readonly services: CmServices,
    private readonly options: CmListenOptions,
    private readonly onClose: () => void,
  ) {
    const { serviceId, backlog } = options;
    const { portSpace, port } = serviceOf(serviceId);
    checkRange('backlog', backlog, 1, Infinity);
    const { calls, addresses, device } = services;
    this.channel = new CmChannel(calls.native, (event) => this.onEvent(event));
    const refused: string[] = [];
    try {
      for (const address of addresses.all(port)) this.listenOn(portSpace, port, address, refused);
      if (this.ids.length > 0) return;
      throw new SpiError(
        'EADDRNOTAVAIL',
        `${device.name} has no address to listen on: ${refused.join('; ') || 'it has none at all'}`,
      );
    } catch (error) {
      this.release();
      throw error;
    }
  }

  close(): void {
    if (!this.isOpen) return;
    this.release();
    this.onClose();
  }

  private release(): void {
    this.isOpen = false;
    for (const id of this.ids.splice(0)) this.services.destroyId(id);
    this.channel.close();
  }

  /** GIDs that are no address of an interface (RoCE v1's, or one without IPv6) are left out. */
  private listenOn(
    portSpace: number,
    port: number,
    address: SocketAddress,
    refused: string[],
  ): void {
    const { calls, device } = this.services;
    const id = calls.createId(this.channel.number, portSpace);
    try {
      calls.bindAddress(id, address);
      const bound = calls.deviceName(id);
      if (bound !== device.name) {
        throw new SpiError('ENODEV', `${address.text} is bound to ${bound ?? 'no device'}`);
      }
      calls.listen(id, this.options.backlog);
      this.ids.push(id);
    } catch (error) {
      this.services.destroyId(id);
      this.checkPortFree(error, portSpace, port, address);
      refused.push(messageOf(error));
    }
  }

  /**
   * rdma_cm says EADDRNOTAVAIL also when a wildcard listener has the port: another port of the
   * same address tells which it is.
   */
  private checkPortFree(
    error: unknown,
    portSpace: number,
    port: number,
    address: SocketAddress,
  ): void {
    const { code } = error as Partial<SpiError>;
    if (code === 'ENOMEM') throw error;
    if (code === 'EADDRINUSE' || (code === 'EADDRNOTAVAIL' && this.canBind(portSpace, address))) {
      throw new SpiError('EADDRINUSE', `port ${port} of ${this.services.device.name} is in use`, {
        cause: error,
      });
    }
  }

  private canBind(portSpace: number, address: SocketAddress): boolean {
    const { calls } = this.services;
    const bytes = address.bytes.slice();
    bytes[2] = bytes[3] = 0;
    const id = calls.createId(this.channel.number, portSpace);
    try {
      calls.bindAddress(id, { bytes, text: address.text });
      return true;
    } catch {
      return false;
    } finally {
      this.services.destroyId(id);
    }
  }

  private onEvent(event: CmNativeEvent): void {
    switch (event.type) {
      case CmEventType.CONNECT_REQUEST:
        this.onRequest(event);
        return;
      case CmEventType.DEVICE_REMOVAL:
        this.services.onRemoval();
        // The kernel waits until the device's identifiers are gone.
        this.services.logger.warn('CM: a listener has lost its device');
        this.ids.splice(this.ids.indexOf(event.id), 1);
        this.services.destroyId(event.id);
        return;
      case CmEventType.CHANNEL_FAILED:
        this.onReadFailure(event.status);
        return;
      default:
        return;
    }
  }

  private onReadFailure(errno: number): void {
    const { logger } = this.services;
    logger.error(`CM: rdma_get_cm_event of a listener: ${errnoName(errno)}`);
    if (++this.readFailures < MAX_READ_FAILURES) return;
    this.isDeaf = true;
    this.watch();
    logger.error('CM: a listener hears nothing any more: close it and listen again');
  }

  private onRequest(event: CmNativeEvent): void {
    this.readFailures = 0;
    const { calls, channel, logger } = this.services;
    try {
      this.pending++;
      calls.migrateId(event.id, channel);
      this.watch();
      if (event.isDatagram) this.handOutInquiry(event);
      else this.handOutRequest(event);
    } catch (error) {
      logger.debug('CM: a request is gone before anybody has seen it', { error });
      this.services.destroyId(event.id);
      this.onSettled();
    }
  }

  private handOutRequest(event: CmNativeEvent): void {
    const { services, options } = this;
    const { onRequest, serviceId } = options;
    const request = new VerbsRequest(services, serviceId, event, () => this.onSettled());
    services.defer(() => {
      if (this.isOpen && onRequest) onRequest(request);
      else request.refuse();
    });
  }

  private handOutInquiry(event: CmNativeEvent): void {
    const { services, options } = this;
    const { onResolve, serviceId } = options;
    const inquiry = new VerbsInquiry(services, serviceId, event, () => this.onSettled());
    services.defer(() => {
      if (this.isOpen && onResolve) onResolve(inquiry);
      else inquiry.close();
    });
  }

  private onSettled(): void {
    this.pending--;
    this.watch();
  }

  private watch(): void {
    this.channel.watch(!this.isDeaf && this.pending < this.options.backlog);
  }
}
