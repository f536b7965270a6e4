/** Joins the processes that share an address, or is the first of them. */
import {
  AsyncEventType,
  type DeviceShare,
  type Gid,
  type Logger,
  SpiError,
} from '../../../core/spi/index.js';
import { GroupMember, type Membership } from '../../slots/member.js';
import { loadNativeAddon, nativeAddonProblem } from '../native-addon.js';
import type { PortGroup } from '../native-port.js';
import { NameLock } from './name-lock.js';
import { type DeviceOfGroup, SharedDevice } from '../../slots/shared-device.js';
import { SocketGroupHost } from './socket-group-host.js';

/** Node ends a process that waits for nothing: a shared device that opens is waited for. */
const HOLD_MS = 1_000;

export interface JoinOptions {
  readonly gids: readonly Gid[];
  readonly udpPort: number;
  /** Which packet port is asked for. */
  readonly port: 'auto' | 'native' | 'dgram';
  readonly logger: Logger;
}

export interface JoinedGroup {
  readonly share: DeviceShare;
  readonly port: PortGroup;
  /** Of the group: others of its processes have it, too. */
  readonly name: string;
  /** What waits for the group in this thread is seen to: for a caller that blocks the event loop. */
  readonly turn: () => void;
  /** The device is there. */
  serve(device: DeviceOfGroup): void;
  /** Its sockets are read no more. Idempotent. */
  leave(): void;
}

/**
 * @throws SpiError EOPNOTSUPP without the addon, or where the system lets nobody steer packets;
 * EADDRINUSE another user's, or not shared; ENOMEM no slot or too many files; ETIMEDOUT
 */
export async function joinGroup(options: JoinOptions): Promise<JoinedGroup> {
  const addon = options.port === 'dgram' ? undefined : loadNativeAddon();
  if (!addon) {
    const problem = options.port === 'dgram' ? "port is 'dgram'" : nativeAddonProblem();
    throw new SpiError('EOPNOTSUPP', `only the native port shares addresses: ${problem ?? ''}`);
  }
  const host = new SocketGroupHost({ ...options, addon });
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
    share: new SharedDevice(membership, member, new NameLock(addon, host.names.lock)),
    port: { slot, descriptors, onClosed: leave },
    name: host.names.broker,
    turn: () => host.turn(),
    serve: ({ cm, node, logger }) => {
      host.device = {
        disconnect: (record) => cm.disconnectFor?.(record),
        deliver: (packet) => node.takeHanded(packet),
        onLost: (reason) => {
          logger.error('the shared device is lost', { reason });
          node.device.raise(AsyncEventType.DEVICE_FATAL);
        },
      };
    },
    leave,
  };
}
