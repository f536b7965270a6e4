/** Device-side duties in a shared-address group, once the device is open. */
import {
  AsyncEventType,
  type CmModule,
  type ConnectionRecord,
  type HandedPacket,
  type Logger,
} from '../../core/spi/index.js';

export interface GroupDevice {
  disconnect(record: ConnectionRecord): void;
  deliver(packet: HandedPacket): void;
  onLost(reason: string): void;
}

/** The device of a process, as its group has it. */
export interface DeviceOfGroup {
  readonly cm: Pick<CmModule, 'disconnectFor'>;
  readonly node: {
    takeHanded(packet: HandedPacket): void;
    readonly device: { raise(event: AsyncEventType): void };
  };
  readonly logger: Logger;
}

export function groupDevice({ cm, node, logger }: DeviceOfGroup): GroupDevice {
  return {
    disconnect: (record) => cm.disconnectFor?.(record),
    deliver: (packet) => node.takeHanded(packet),
    onLost: (reason) => {
      logger.error('the shared device is lost', { reason });
      node.device.raise(AsyncEventType.DEVICE_FATAL);
    },
  };
}
