/**
 * Hears that the device is being removed. rdma_cm tells each identifier that is bound to a device,
 * and an adapter may have none: this one is bound to an address, and does nothing. Of verbs only
 * drivers that can take the device from the processes that have it open tell (rdma_rxe cannot); the
 * kernel waits until all have closed it.
 */
import { PortSpace } from '../../../core/spi/index.js';
import { messageOf } from '../../../plugins/cm/provider.js';
import type { CmNativeEvent } from './channel.js';
import type { CmIdOwner, CmServices } from './connection.js';
import { bindTo, makeId } from './identifier.js';
import { CmEventType } from '../addon/rdmacm.js';

/** Any one that is free. */
const PORT = 0;
const PORT_SPACE = Number(PortSpace.TCP);

export class RemovalWatch implements CmIdOwner {
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
