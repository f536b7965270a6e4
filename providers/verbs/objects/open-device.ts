/** The open device, as its objects see it. */
import {
  type DeviceAttributes,
  type DeviceCapability,
  type Gid,
  type SpiError,
  token,
} from '../../../core/spi/index.js';
import type { VerbsAddon } from '../addon/native-addon.js';
import type { VerbsDevice } from '../device.js';
import type { EventTable } from './event-table.js';
import type { DeviceTime } from './last-receive.js';

/** The device without its wrappers, for what is not in the contract of devices. */
export const OWN_DEVICE = token<VerbsDevice>('verbs/own-device');

/** An object of a device, until it is destroyed. */
export interface OpenObject {
  /** Marks it as destroyed: the device has gone, with all its objects. */
  markDestroyed(): void;
}

export interface OpenDevice {
  readonly name: string;
  readonly addon: VerbsAddon;
  /** The addon's. */
  readonly number: number;
  readonly attributes: DeviceAttributes;
  readonly capabilities: ReadonlySet<DeviceCapability>;
  readonly gids: readonly Gid[];
  /** Wait method of completion queues with 'event'. */
  readonly polling: 'event' | 'adaptive';
  readonly time: DeviceTime | undefined;
  /** Everything that is there, parents before children. */
  readonly objects: Set<OpenObject>;
  readonly events: EventTable;
  /** Bytes of all regions. */
  registeredBytes: number;

  /** Place in the port's table of a GID of `gids`. @throws SpiError('EINVAL') */
  hardwareGidIndex(localGidIndex: number): number;
  /** Place in `gids` of an entry of the port's table; 0 if it is none. */
  localGidIndex(hardwareIndex: number): number;
  /** Runs a handler in the pump; an exception in it stops nothing. */
  handle(handler: () => void): void;
  /** Why memory could not be registered. */
  registrationError(errno: number, lengthBytes: number, iova?: bigint): SpiError;
}
