/** Chooses the packet port of this machine. */
import { openDgramPort } from './dgram-port.js';
import { loadNativeAddon, nativeAddonProblem } from './native-addon.js';
import { openNativePort, type PortGroup } from './native-port.js';
import type { SocketPort, SocketPortOptions } from './port-options.js';

export interface SocketPortChoice extends SocketPortOptions {
  /** `auto` is native where the addon has been built, else dgram. */
  readonly port?: 'auto' | 'native' | 'dgram';
  /** What the port has of addresses that processes share: for the native one. */
  readonly group?: PortGroup;
}

/**
 * Opens a port on every address, or on none.
 * @throws SpiError EADDRINUSE, EADDRNOTAVAIL, EACCES, EINVAL; EOPNOTSUPP for `native` without addon
 */
export async function openSocketPort(options: SocketPortChoice): Promise<SocketPort> {
  const { port = 'auto' } = options;
  if (port === 'dgram') return openDgramPort(options);
  if (port === 'native' || loadNativeAddon()) return openNativePort(options);
  return openDgramPort(options, nativeAddonProblem());
}
