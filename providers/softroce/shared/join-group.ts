/** Joins the processes that share an address; may be the first of them. */
import { type DeviceShare, SpiError } from '../../../core/spi/index.js';
import { GroupMember, type Membership } from '../../shared-address/member.js';
import { NameLock } from './names.js';
import { type DeviceOfGroup, groupDevice } from '../../shared-address/group-device.js';
import { SharedDevice } from '../../shared-address/shared-device.js';
import { SocketGroupHost, type SocketGroupInit } from './socket-group-host.js';

/** Node ends a process that waits for nothing: a shared device that opens is waited for. */
const HOLD_MS = 1_000;

export interface JoinedGroup {
  readonly share: DeviceShare;
  /** Slot and sockets for the native port. It calls `onClosed` when it no longer reads them. */
  readonly port: {
    readonly slot: number;
    readonly descriptors: readonly number[];
    readonly onClosed: () => void;
  };
  /** The name of the group: its other processes use the same one. */
  readonly name: string;
  /**
   * Handles waiting events of the group in this thread, for a caller that blocks the event loop.
   */
  readonly turn: () => void;
  /** The device is there. */
  serve(device: DeviceOfGroup): void;
  /** Leaves the group: its sockets are no longer read. Idempotent. */
  leave(): void;
}

/**
 * @throws SpiError EOPNOTSUPP where the system does not let us steer packets;
 * EADDRINUSE another user's, or not shared; ENOMEM no slot or too many files; ETIMEDOUT
 */
export async function joinGroup(init: SocketGroupInit): Promise<JoinedGroup> {
  const host = new SocketGroupHost(init);
  const { member, membership } = await new Promise<{
    member: GroupMember;
    membership: Membership;
  }>((resolve, reject) => {
    const hold = setInterval(() => undefined, HOLD_MS);
    const joining = new GroupMember(host, (joined, error) => {
      clearInterval(hold);
      if (joined) resolve({ member: joining, membership: joined });
      else reject(error ?? new SpiError('EIO', 'a shared device could not be opened'));
    });
    joining.start();
  });
  const { slot, descriptors } = membership;
  const leave = (): void => member.close();
  return {
    share: new SharedDevice(membership, member, new NameLock(init.addon, host.names.lock)),
    port: { slot, descriptors, onClosed: leave },
    name: host.names.broker,
    turn: () => host.turn(),
    serve: (device) => {
      host.device = groupDevice(device);
    },
    leave,
  };
}
