/** RDMA between the worker threads of a program: the provider is a packet port and four lines. */
import type { ConfiguredProvider } from 'dapl/spi';
import { hcaProvider } from 'dapl/provider-kit';
import { ThreadPort, type ThreadPortOptions } from './thread-port.js';

export { createLink, type ThreadLink } from './link.js';
export { ThreadPort, type ThreadPortOptions } from './thread-port.js';

export function threads(options: ThreadPortOptions): ConfiguredProvider {
  return hcaProvider({
    name: 'threads',
    key: options.address,
    port: () => new ThreadPort(options),
  });
}
