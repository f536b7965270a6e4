/**
 * Listens through librdmacm: one identifier for each address of our device, so that requests for
 * other devices of the host, or for processes that listen there, never arrive here. The identifiers
 * share a channel of their own. It is not read while the backlog of waiting requests is full: the
 * kernel then holds as many more, and drops later ones.
 */
import { type CmListener, type CmListenOptions, SpiError } from '../../../core/spi/index.js';
import { checkRange, messageOf } from '../../../plugins/cm/provider.js';
import { type CmService, serviceOf, type SocketAddress } from './address.js';
import { CmChannel, type CmNativeEvent } from './channel.js';
import type { CmIdOwner, CmServices } from './connection.js';
import { bindTo, makeId } from './identifier.js';
import { VerbsInquiry } from './inquiry.js';
import { CmEventType } from '../addon/rdmacm.js';
import { requestOf } from './request.js';

export class VerbsListener implements CmListener {
  private readonly channel: CmChannel;
  private readonly ids: number[] = [];
  private pending = 0;
  private isOpen = true;

  /** @throws SpiError as CmModule.listen; EADDRNOTAVAIL without an address to listen on */
  constructor(
    private readonly services: CmServices,
    private readonly options: CmListenOptions,
    private readonly onClose: () => void,
  ) {
    const { serviceId, backlog } = options;
    const service = serviceOf(serviceId);
    checkRange('backlog', backlog, 1, Infinity);
    const { calls, addresses, device, logger } = services;
    this.channel = new CmChannel(
      calls.native,
      logger,
      (event) => this.onEvent(event),
      () => logger.error('CM: a listener hears nothing any more: close it and listen again'),
    );
    const refused: string[] = [];
    try {
      for (const address of addresses.all(service.port)) this.listenOn(service, address, refused);
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
  private listenOn(service: CmService, address: SocketAddress, refused: string[]): void {
    const { services, channel, options } = this;
    const listen = (id: number): void => {
      bindTo(services, id, address);
      services.calls.listen(id, options.backlog);
    };
    try {
      this.ids.push(makeId(services, service.portSpace, listen, channel.number));
    } catch (error) {
      this.checkPortFree(error, service, address);
      refused.push(messageOf(error));
    }
  }

  /**
   * rdma_cm says EADDRNOTAVAIL also when a wildcard listener has the port: another port of the
   * same address tells which it is.
   */
  private checkPortFree(error: unknown, service: CmService, address: SocketAddress): void {
    const { portSpace, port } = service;
    const { code } = error as Partial<SpiError>;
    if (code === 'ENOMEM') throw error;
    const { name } = this.services.device;
    if (code === 'EACCES') {
      const hint = 'ports below 1024 need root or CAP_NET_BIND_SERVICE: take one from 1024 on';
      throw new SpiError('EACCES', `port ${port} of ${name} is privileged`, { cause: error, hint });
    }
    if (code === 'EADDRINUSE' || (code === 'EADDRNOTAVAIL' && this.canBind(portSpace, address))) {
      throw new SpiError('EADDRINUSE', `port ${port} of ${name} is in use`, { cause: error });
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
      default:
        return;
    }
  }

  private onRequest(event: CmNativeEvent): void {
    const { calls, channel, logger } = this.services;
    try {
      this.pending++;
      calls.migrateId(event.id, channel);
      this.watch();
      this.handOut(event);
    } catch (error) {
      logger.debug('CM: a request is gone before anybody has seen it', { error });
      this.services.destroyId(event.id);
      this.onSettled();
    }
  }

  private handOut(event: CmNativeEvent): void {
    const { services, options } = this;
    const { onRequest, onResolve, serviceId } = options;
    const onSettled = (): void => this.onSettled();
    if (event.isDatagram) {
      const inquiry = new VerbsInquiry(services, serviceId, event, onSettled);
      this.offer(inquiry, inquiry, onResolve);
    } else {
      const { request, connection } = requestOf(services, serviceId, event, onSettled);
      this.offer(request, connection, onRequest);
    }
  }

  /** Offers a request to the consumer. Without one, the peer is refused. */
  private offer<R>(
    request: R,
    owner: CmIdOwner,
    handler: ((request: R) => void) | undefined,
  ): void {
    this.services.defer(() => {
      if (this.isOpen && handler) handler(request);
      else owner.close();
    });
  }

  private onSettled(): void {
    this.pending--;
    this.watch();
  }

  private watch(): void {
    this.channel.watch(this.pending < this.options.backlog);
  }
}
