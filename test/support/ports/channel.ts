/** Pairs of native ports with shared memory between them, for the suite and its processes. */
import type { PacketPortFixture } from 'dapl/testing';
import { CHANNEL_MTU_BYTES } from '../../../core/spi/index.js';
import { openNativePort } from '../../../providers/softroce/port/native-port.js';
import { joinPorts } from '../joined-ports.js';
import { loopback, testPort } from '../loopback.js';

export const fixture: PacketPortFixture = {
  capabilities: ['ipv4', 'ipv6', 'addresses-ipv4', 'process'],
  openPair(family) {
    const udpPort = testPort(11);
    const [module, pathBytes] = [import.meta.url, CHANNEL_MTU_BYTES];
    if (family === 'ipv6') {
      const a = openNativePort({ addresses: ['::1'], udpPort });
      const b = openNativePort({ addresses: ['::1'], udpPort: testPort(12) });
      joinPorts(a, b, udpPort, testPort(12));
      return Promise.resolve({ a, b, module, pathBytes });
    }
    const a = openNativePort({ addresses: [loopback(0, 26)], udpPort });
    const b = openNativePort({ addresses: [loopback(0, 27), loopback(0, 28)], udpPort });
    joinPorts(a, b, udpPort);
    return Promise.resolve({ a, b, module, pathBytes });
  },
};
