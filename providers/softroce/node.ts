/** A softroce device of this process: the software HCA on a socket port. */
import type { DeviceShare, Logger, PacketPort } from '../../core/spi/index.js';
import type { DeviceHooks, HcaParameters } from '../hca/index.js';
import { HcaNode } from '../kit/hca-node.js';
import { openHostedDomain, type XrcHostInit } from './xrc-host/open-domain.js';
import { SOCKET_PORT_COUNTERS, type SocketPort } from './port/port-options.js';

export interface SoftroceNodeOptions {
  readonly name: string;
  readonly port: SocketPort;
  /** The port by which the device reaches that port; default: the port itself. */
  readonly through?: PacketPort;
  readonly logger: Logger;
  readonly parameters: Partial<HcaParameters>;
  /** Set if other processes share the device. */
  readonly share?: DeviceShare | undefined;
  /** Set if processes share XRC domains. */
  readonly xrcHost?: XrcHostInit;
}

export function softroceNode(options: SoftroceNodeOptions): HcaNode {
  const { name, port, through = port, logger, parameters, share, xrcHost } = options;
  const { mapFile, shareMemory, allocate } = port;
  return new HcaNode({
    name,
    port: through,
    logger,
    parameters,
    share,
    hooks: {
      portCounters: SOCKET_PORT_COUNTERS,
      ...(mapFile && { mapFile: mapFile.bind(port) }),
      ...(shareMemory && { shareMemory: shareMemory.bind(port) }),
      ...(shareMemory && xrcHost && xrcHooks(xrcHost, shareMemory.bind(port))),
      ...(allocate && { allocate: allocate.bind(port) }),
    },
    rest: port.rest?.bind(port),
  });
}

/** Notes the name of shared memory, by which the host of a domain can have it, too. */
function xrcHooks(
  host: XrcHostInit,
  shareMemory: NonNullable<DeviceHooks['shareMemory']>,
): Pick<DeviceHooks, 'openXrcDomain' | 'shareMemory'> {
  return {
    openXrcDomain: (hca, sharing) => openHostedDomain(host, hca, sharing),
    shareMemory: (name, lengthBytes) => {
      const memory = shareMemory(name, lengthBytes);
      host.names.set(memory, name);
      return memory;
    },
  };
}
