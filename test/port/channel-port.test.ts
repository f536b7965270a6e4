import { CHANNEL_MTU_BYTES } from '../../core/spi/index.js';
import { describePacketPort } from 'dapl/testing';
import { openNativePort } from '../../providers/softroce/port/native-port.js';
import { joinPorts } from '../support/joined-ports.js';
import { loopback, testPort } from '../support/loopback.js';

describePacketPort('native port through shared memory', {
  capabilities: ['ipv4', 'ipv6'],
  openPair(family) {
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
