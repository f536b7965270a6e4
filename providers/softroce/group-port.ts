/** The port of a process that shares its addresses with others. */
import { type Gid, type Logger, SpiError } from '../../core/spi/index.js';
import { bindError } from './port/bind-error.js';
import { loadNativeAddon, nativeAddonProblem } from './port/native-addon.js';
import type { SocketPort } from './port/port-options.js';
import { type JoinedGroup, joinGroup } from './shared/join-group.js';
import { openSocketPort, type SocketPortChoice } from './socket-port.js';

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
