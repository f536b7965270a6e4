/** Chooses the packet port of this machine. */
import { SpiError, type Gid, type Logger } from '../../core/spi/index.js';
import { gidsOf } from '../hca/common/port-options.js';
import { openDgramPort } from './dgram/port.js';
import { loadNativeAddon, nativeAddonProblem } from './port/native-addon.js';
import { openNativePort, type PortGroup } from './port/native-port.js';
import { ROCE_UDP_PORT, type SocketPort, type SocketPortOptions } from './port/port-options.js';
import { inUseByUsers, otherUsers } from './shared/group-errors.js';
import { isGroupThere } from './shared/names.js';
import { bindError } from './port/port-errors.js';
import { type JoinedGroup, joinGroup } from './shared/join-group.js';

export interface SocketPortChoice extends SocketPortOptions {
  /** `auto` is native where the addon has been built, else dgram. */
  readonly port?: 'auto' | 'native' | 'dgram';
  /** The native port's part of addresses that processes share. */
  readonly group?: PortGroup;
}

/**
 * Opens a port on every address, or on none.
 * @throws SpiError EADDRINUSE, EADDRNOTAVAIL, EACCES, EINVAL; EOPNOTSUPP for `native` without addon
 */
export async function openSocketPort(options: SocketPortChoice): Promise<SocketPort> {
  try {
    return await openChosen(options);
  } catch (error) {
    throw options.group === undefined ? withHolder(error, options) : error;
  }
}

/** An address is in use: which user has it, or that its programs share it, as this one could. */
function withHolder(
  error: unknown,
  { addresses, udpPort = ROCE_UDP_PORT }: SocketPortChoice,
): unknown {
  if (!(error instanceof SpiError) || error.code !== 'EADDRINUSE') return error;
  const gids = gidsOf(addresses);
  // Only the addon reads which user has a socket.
  const addon = loadNativeAddon();
  for (const gid of gids) {
    const others = otherUsers(addon?.socketUsers(gid, udpPort) ?? []);
    if (others.length > 0) return inUseByUsers(gid, udpPort, others, error);
  }
  if (!isGroupThere(gids, udpPort)) return error;
  return new SpiError('EADDRINUSE', `${addresses.join(', ')} is shared by other programs`, {
    cause: error,
    hint: 'open it with shared: true here too',
  });
}

async function openChosen(options: SocketPortChoice): Promise<SocketPort> {
  const { port = 'auto' } = options;
  if (port === 'dgram') return openDgramPort(options);
  if (port === 'native' || loadNativeAddon()) return openNativePort(options);
  return openDgramPort(options, nativeAddonProblem());
}

// The port of a process that shares its addresses with others.

export interface SharedAddress {
  readonly gids: readonly Gid[];
  readonly udpPort: number;
  /** The packet port that is requested. */
  readonly port: NonNullable<SocketPortChoice['port']>;
  readonly logger: Logger;
}

/** @throws SpiError EOPNOTSUPP without the native port; as `joinGroup` */
export async function joinSharedAddress(address: SharedAddress): Promise<JoinedGroup> {
  const { port, ...rest } = address;
  const addon = port === 'dgram' ? undefined : loadNativeAddon();
  if (addon) return joinGroup({ ...rest, addon, bindError });
  const problem = port === 'dgram' ? "port is 'dgram'" : (nativeAddonProblem() ?? '');
  throw new SpiError('EOPNOTSUPP', `only the native port shares addresses: ${problem}`, {
    hint: 'in a bundle, copy `prebuilds` of the package beside it (docs/softroce.md, In a bundle)',
  });
}

/** A group that has been joined in vain is left. */
export async function openGroupPort(
  group: JoinedGroup,
  options: SocketPortChoice,
): Promise<SocketPort> {
  try {
    return await openSocketPort({ ...options, port: 'native', group: group.port });
  } catch (error) {
    group.leave();
    throw error;
  }
}
