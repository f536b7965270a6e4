import { CHANNEL_MTU_BYTES } from '../../core/spi/index.js';
import { openNativePort } from '../../providers/softroce/native-port.js';
import { joinPorts } from '../support/joined-ports.js';
import { loopback, testPort } from '../support/loopback.js';
import { describePacketPort } from './packet-port-suite.js';

describePacketPort('native port through shared memory', {
  capabilities: { families: ['ipv4', 'ipv6'] },
  createPair(family) {
    const udpPort = testPort(11);
    if (family === 'ipv6') {
      const a = openNativePort({ addresses: ['::1'], udpPort });
      const b = openNativePort({ addresses: ['::1'], udpPort: testPort(12) });
      joinPorts(a, b, udpPort, testPort(12));
      return Promise.resolve({ a, b, pathBytes: CHANNEL_MTU_BYTES });
    }
    const a = openNativePort({ addresses: [loopback(0, 26)], udpPort });
    const b = openNativePort({ addresses: [loopback(0, 27), loopback(0, 28)], udpPort });
    joinPorts(a, b, udpPort);
    return Promise.resolve({ a, b, pathBytes: CHANNEL_MTU_BYTES });
  },
});
